"""New paths against the same wall: warned about at the third, stopped at the sixth. Where the
call is the same too, the fourth is enough.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"repeated_error": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def failed(path):
    return Step(
        kind="tool", name="write", arguments={"path": path}, error="PermissionError: read-only"
    )


assert spoken(failed(f"{n}.txt") for n in range(9)) == [("warn", 3, 3), ("abort", 6, 6)]
assert spoken([failed("a.txt")] * 9) == [("warn", 3, 3), ("abort", 4, 4)]
