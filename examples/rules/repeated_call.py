"""Nobody records what comes back. Eight equal calls stop the run; other work between them,
and it is left alone.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"repeated_call": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def search(query):
    return Step(kind="tool", name="search", arguments={"q": query})


assert spoken([search("x")] * 9) == [("warn", 4, 4), ("abort", 8, 8)]
assert spoken(step for n in range(9) for step in (search("x"), search(f"x {n}"))) == []
