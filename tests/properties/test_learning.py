"""A law: a call that shows its arguments before it is made is judged as if it always had."""

from __future__ import annotations

import hypothesis.strategies as some
from hypothesis import given

from otel_loopguard import LoopGuard, Policy, SpanKey, Step

POLICIES = some.sampled_from(
    (
        Policy(),
        Policy.none().with_limits(max_repeated_calls=2),
        Policy.none().with_limits(loop_pattern_window=4),
        Policy.none().with_limits(max_same_tool_calls=2, max_tool_calls=5),
        Policy(tools={"b": {"poll": True}}, max_repeated_calls=2),
    )
)
CALLS = some.lists(
    some.tuples(
        some.sampled_from("ab"),
        some.sampled_from((1, 2, 3)),
        some.sampled_from(("nothing", "something", None)),
    ),
    max_size=14,
)


@given(POLICIES, CALLS)
def test_learning_is_knowing(policy: Policy, calls: list[tuple[str, int, str | None]]):
    known, learned = LoopGuard(policy, clock=lambda: 0.0), LoopGuard(policy, clock=lambda: 0.0)
    for number, (name, value, result) in enumerate(calls):
        blind = Step(kind="tool", name=name, span=SpanKey(1, number + 1))
        shown = Step(kind="tool", name=name, span=blind.span, arguments={"q": value})
        came_back = (
            Step(kind="tool", name=name, span=blind.span, arguments={"q": value}, result=result)
            if result
            else Step(kind="tool", name=name, span=blind.span, arguments={"q": value}, error="down")
        )
        at_once = known.check(shown, commit=True)
        first, then = learned.check(blind, commit=True), learned.learn(shown, commit=True)
        assert at_once.allowed == (first.allowed and then.allowed)
        assert {v.rule for v in at_once.violations} == {
            v.rule for v in (*first.violations, *then.violations)
        }
        assert known.record(came_back).violations == learned.record(came_back).violations
    assert known.report().violations == learned.report().violations
