"""Four pages are read once more, and then again: each adds to the score, and the seventh is one
too many. An old page now and then, between new ones, adds next to nothing.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"stagnation": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def read(page):
    return Step(kind="tool", name="read", arguments={"page": page}, result=f"text of {page}" * 20)


work = [*"abcd", "e", "a", "f", "b", "g", "c", "h", "d", "i", "a", "j", "b"]

assert spoken(map(read, "abcd" + "acbd" * 3)) == [("warn", 10, 16.3), ("abort", 11, 20.5)]
assert spoken(map(read, work)) == []
