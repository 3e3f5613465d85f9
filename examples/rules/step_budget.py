"""The fourth step of three is refused before it happens, whatever it is."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_steps=3)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


turn = Step(kind="llm", name="small-model")
call = Step(kind="tool", name="search", arguments={"q": "x"}, result="found")

assert spoken([turn, call, turn]) == []
assert spoken([turn, call, turn, call, turn]) == [("abort", 4, 4)]
