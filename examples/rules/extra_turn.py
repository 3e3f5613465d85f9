"""The answer is there, and the loop calls the model once more. It is only warned about, unless
a threshold to abort is set.
"""

from otel_loopguard import LoopGuard, Policy, Step, ToolCall

policy = Policy.from_mapping({"rules": {"extra_turn": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


asks = Step(kind="llm", name="m", tool_calls=(ToolCall(name="search"),))
call = Step(kind="tool", name="search", arguments={"q": "x"}, result="found")
answer = Step(kind="llm", name="m", output="It is x.", tool_calls=(), finish_reasons=("stop",))

assert spoken([asks, call, answer]) == []
assert spoken([asks, call, answer, answer, answer]) == [("warn", 4, 1)]
