"""Turns at 50 cents each: two are a dollar, the third is more."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_cost_usd=1.0)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


turn = Step(kind="llm", name="large-model", cost_usd=0.5)

assert spoken([turn] * 2) == []
assert spoken([turn] * 9) == [("abort", 3, 1.5)]
