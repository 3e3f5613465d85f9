"""The model speaks four times in a row and calls nothing, where three times are allowed."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_turns_without_tool=3)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


talk = Step(kind="llm", name="small-model", output="Let me think about it.", tool_calls=())
call = Step(kind="tool", name="search", arguments={"q": "x"}, result="found")

assert spoken([talk, talk, talk, call, talk, talk, talk]) == []
assert spoken([talk, talk, talk, talk]) == [("abort", 4, 4)]
