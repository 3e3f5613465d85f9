"""One turn after another ends at the token limit: warned about at the second, stopped at the
third.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"truncated_turns": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


cut = Step(kind="llm", name="small-model", output="Here is all of it:", finish_reasons=("length",))
whole = Step(kind="llm", name="small-model", output="Done.", finish_reasons=("stop",))

assert spoken([cut] * 9) == [("warn", 2, 2), ("abort", 3, 3)]
assert spoken([cut, whole] * 9) == []
