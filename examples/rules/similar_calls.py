"""The question is put again and again, each time a little more urgently, whatever comes back.
Switched on for this example: it is off by default.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping(
    {"rules": {"similar_calls": {"warn": 4, "abort": 6}}}, base=Policy.none()
)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def search(query, found):
    return Step(kind="tool", name="search", arguments={"q": query}, result=found)


asked = ["who invented the first steam engine in England" + "?" * n for n in range(9)]
others = ["steam engine", "Newcomen", "patent of 1698", "atmospheric engine", "Cornish mines"]

assert spoken(search(q, n) for n, q in enumerate(asked)) == [("warn", 4, 4), ("abort", 6, 6)]
assert spoken(search(q, n) for n, q in enumerate(others * 2)) == []
