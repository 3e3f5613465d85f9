"""The third turn reads more than one turn may. The sum over the turns does not matter."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_context_tokens=2_500)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def turn(tokens):
    return Step(kind="llm", name="small-model", input_tokens=tokens, output_tokens=50)


assert spoken([turn(2_000)] * 10) == []
assert spoken([turn(1_000), turn(2_000), turn(3_000)]) == [("abort", 3, 3_000)]
