"""Each call takes 20 seconds. A minute has passed when the third comes back: stopped."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_duration_s=60)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


calls = [
    Step(kind="tool", name="build", arguments={"n": n}, result=n, started_s=s, ended_s=s + 20)
    for n, s in enumerate(range(0, 100, 20))
]

assert spoken(calls[:2]) == []
assert spoken(calls) == [("abort", 3, 60)]
