"""Six searches in a row where five are allowed, each for something else."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_same_tool_calls=5)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def search(query):
    return Step(kind="tool", name="search", arguments={"q": query}, result=f"about {query}")


read = Step(kind="tool", name="read_page", arguments={"n": 1}, result="text")

assert spoken([*map(search, "abcde"), read, *map(search, "fghij")]) == []
assert spoken(map(search, "abcdefgh")) == [("abort", 6, 6)]
