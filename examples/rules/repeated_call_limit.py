"""Equal calls in a row, with an answer that changes: the limit does not look at answers."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_repeated_calls=3)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def poll(answer):
    return Step(kind="tool", name="get_status", arguments={"job": 7}, result=answer)


assert spoken(poll(f"{n} % done") for n in range(3)) == []
assert spoken(poll(f"{n} % done") for n in range(9)) == [("abort", 4, 4)]
