"""The third model call of two is refused; tool calls between do not count."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_llm_calls=2)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


turn = Step(kind="llm", name="small-model")
call = Step(kind="tool", name="search", arguments={"q": "x"}, result="found")

assert spoken([turn, call, call, turn, call]) == []
assert spoken([turn, call, call, turn, call, turn]) == [("abort", 6, 3)]
