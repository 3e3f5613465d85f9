"""A call hangs. A timer asks when the guard says so, and finds half a minute of silence."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_idle_s=30)


guard = LoopGuard(policy)
guard.start(at=0.0)
guard.check(Step(kind="tool", name="build", arguments={"n": 1}, started_s=5.0))

assert guard.due_s() == 35.0
assert guard.tick(at=34.9).allowed
assert guard.tick(at=35.0).reason == "MAX_IDLE_EXCEEDED"
assert [(found.step, found.count) for found in guard.end().violations] == [(1, 30.0)]
