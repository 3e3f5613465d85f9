"""A writer and an editor hand a text back and forth, and say the same each time."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"agent_handoff_cycle": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def turn(agent, text):
    return Step(kind="llm", name="small-model", agent=agent, output=text, tool_calls=())


refused = [turn("writer", "Please check it."), turn("editor", "Please mend it.")]
better = [turn(agent, f"version {n}") for n in range(9) for agent in ("writer", "editor")]

assert spoken(refused * 9) == [("warn", 7, 3), ("abort", 13, 6)]
assert spoken(better) == []
