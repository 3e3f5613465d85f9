"""Three failures in a row are allowed, whatever fails and however. The fourth stops the run."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_consecutive_errors=3)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def failed(tool):
    return Step(kind="tool", name=tool, arguments={}, error=f"{tool} is out of order")


works = Step(kind="tool", name="clock", arguments={}, result="noon")

assert spoken([failed("a"), failed("b"), failed("c"), works, failed("d")]) == []
assert spoken([failed("a"), failed("b"), failed("c"), failed("d")]) == [("abort", 4, 4)]
