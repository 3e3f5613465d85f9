"""The model may search, and makes up one tool after another."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"unknown_tool": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


turn = Step(kind="llm", name="small-model", offered_tools=frozenset({"search"}))


def call(name):
    return Step(kind="tool", name=name, arguments={}, error="there is no such tool")


made_up = [step for name in ["find", "look", "ask", "seek", "get"] for step in (turn, call(name))]

assert spoken(made_up) == [("warn", 6, 3), ("abort", 10, 5)]
assert spoken([turn, call("search")] * 6) == []
