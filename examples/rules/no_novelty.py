"""Five old steps in a row, in any order, stop the run. One new step in between begins anew."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"no_novelty": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def read(page):
    return Step(kind="tool", name="read", arguments={"page": page}, result=f"text of {page}")


assert spoken(map(read, "abcd" + "dbacb")) == [("warn", 7, 3), ("abort", 9, 5)]
assert spoken(map(read, "abcd" + "db" + "e" + "ac" + "f" + "bd")) == []
