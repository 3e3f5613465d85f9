"""A cycle of three fills a window of eight at the eighth call, whatever comes back."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(loop_pattern_window=8)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def calls(names):
    return [Step(kind="tool", name=name, arguments={}, result=n) for n, name in enumerate(names)]


assert spoken(calls("abcabc")) == []
assert spoken(calls("abcabcab")) == [("abort", 8, 8)]
assert spoken(calls("abcabdabcabd"[:8])) == []
