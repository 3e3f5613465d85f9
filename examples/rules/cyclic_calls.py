"""Two tools send the agent back and forth: two rounds are warned about, three stop the run.
If something new comes back in each round, it is work.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"cyclic_calls": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def round_of(tests):
    yield Step(kind="tool", name="open", arguments={"path": "a.py"}, result="code")
    yield Step(kind="tool", name="run_tests", arguments={}, result=tests)


assert spoken([*round_of("7 failed")] * 5) == [("warn", 4, 2), ("abort", 6, 3)]
assert spoken(step for n in range(5) for step in round_of(f"{n} failed")) == []
