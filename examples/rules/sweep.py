"""One page after another, and no end of them. Switched on for this example: it is off by
default.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"sweep": {"warn": 10, "abort": 20}}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def read(page):
    return Step(kind="tool", name="list_orders", arguments={"page": page}, result=f"page {page}")


assert spoken(map(read, range(1, 30))) == [("warn", 10, 10), ("abort", 20, 20)]
assert spoken(map(read, [1, 2, 3, 9, 4, 7, 12, 30, 31, 8, 40])) == []
