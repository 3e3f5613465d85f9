"""Five calls within five seconds are one too many for four a minute; one each 15 seconds is not."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_steps_per_minute=4)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def calls(apart_s):
    return [
        Step(kind="tool", name="ping", arguments={"n": n}, started_s=s, ended_s=s)
        for n, s in enumerate(range(0, 10 * apart_s, apart_s))
    ]


assert spoken(calls(apart_s=15)) == []
assert spoken(calls(apart_s=1)) == [("abort", 5, 5)]
