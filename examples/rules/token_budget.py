"""A context that grows: 1,000 tokens, then 2,000, then 3,000. The third turn is over 5,000."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_total_tokens=5_000)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


turns = [
    Step(kind="llm", name="small-model", input_tokens=1_000 * n, output_tokens=50)
    for n in range(1, 6)
]

assert spoken(turns[:2]) == []
assert spoken(turns) == [("abort", 3, 6_150)]
