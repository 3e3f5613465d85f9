"""The model announces the same again and never does it. Where a tool brings something new in
between, the same words are no loop.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"repeated_output": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


turn = Step(kind="llm", name="small-model", output="I will read the file now.", tool_calls=())


def read(page):
    return Step(kind="tool", name="read", arguments={"page": page}, result=f"text of {page}")


assert spoken([turn] * 9) == [("warn", 3, 3), ("abort", 5, 5)]
assert spoken(step for n in range(9) for step in (turn, read(n))) == []
