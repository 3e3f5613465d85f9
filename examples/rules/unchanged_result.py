"""The question is worded anew each time, and nothing is ever found. Other questions with the
same full answer are other matters: ten writes that all say "ok" are ten writes.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"unchanged_result": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def search(words):
    return Step(kind="tool", name="search", arguments={"q": words}, result="No results found.")


def write(path):
    return Step(kind="tool", name="write", arguments={"path": path}, result="ok")


assert spoken(search(f"otters in town {n}") for n in range(9)) == [("warn", 4, 4), ("abort", 8, 8)]
assert spoken(write(f"{n}.txt") for n in range(9)) == []
