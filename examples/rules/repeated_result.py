"""The same file, and the same in it: warned about at the third time, stopped at the fifth.
The same question with another answer each time is polling, and that is left alone.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"repeated_result": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def read(text):
    return Step(kind="tool", name="read_file", arguments={"path": "log.txt"}, result=text)


assert spoken([read("nothing yet")] * 9) == [("warn", 3, 3), ("abort", 5, 5)]
assert spoken(read(f"line {n}") for n in range(9)) == []
