"""One mail may be sent. The second is refused, although it is another one."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_tool_calls=50, max_calls_per_tool={"send_mail": 1})


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def mail(to):
    return Step(kind="tool", name="send_mail", arguments={"to": to}, result="sent")


search = Step(kind="tool", name="search", arguments={"q": "x"}, result="found")

assert spoken([search, mail("ann"), search]) == []
assert spoken([search, mail("ann"), search, mail("bob")]) == [("abort", 4, 2)]
