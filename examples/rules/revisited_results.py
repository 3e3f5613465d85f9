"""Every third page is a new one, and the two after it were read before: never two equal
calls in a row, and still seven of ten that bring nothing. Every other one new is left alone.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping({"rules": {"revisited_results": True}}, base=Policy.none())


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def read(page):
    return Step(kind="tool", name="read", arguments={"page": page}, result=f"text of {page}")


wandering = [*"ab", *"1ab", *"2ba", *"3ab", *"4ba", *"5ab"]

assert spoken(map(read, wandering)) == [("warn", 11, 6), ("abort", 13, 7)]
assert spoken(map(read, "ab1a2b3a4b5a6b")) == []
