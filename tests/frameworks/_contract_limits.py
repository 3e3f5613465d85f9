"""The contract: a limit of N lets N through, and the run ends before its next model request.

Where a limit is met by a tool call that the model has already asked for, that call is not made if
its span lets an exception out when it starts. Else it runs, and is counted.
"""

from __future__ import annotations

import pytest

from otel_loopguard import Policy, RunAborted, guarded_run
from tests.frameworks._expected import aborted, ended_runs, violations
from tests.frameworks._workbench import Counts, Workbench

ONLY = Policy.none()


class TestModelCalls:
    """Five model calls are five requests."""

    @pytest.mark.parametrize("content", [True, False], ids=["content", "no-content"])
    def test_exactly_five(self, bench: Workbench, mode: str, *, content: bool):
        with bench.guarded(ONLY.with_limits(max_llm_calls=5), content=content) as scene:
            outcome = scene.play(mode)
        report = aborted(outcome).report
        assert outcome.counts == Counts(requests=5, executions=5)
        assert (report.rule, report.status) == ("llm_call_budget", "aborted")
        assert (report.steps, report.model_calls, report.tool_calls) == (10, 5, 5)
        assert report.trip is not None
        assert (report.trip.phase, report.trip.count, report.trip.threshold) == ("pre", 6, 5)
        [violation] = violations(scene)
        assert violation["on"] in bench.framework.spans_told_on
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_in_a_guarded_run(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY.with_limits(max_llm_calls=5)) as scene:
            outcome = scene.play(mode, around=guarded_run())
        assert type(outcome.error) is RunAborted
        report = outcome.error.report
        assert (report.rule, report.model_calls) == ("llm_call_budget", 5)
        assert outcome.counts == Counts(requests=5, executions=5)

    def test_a_healthy_run_may_use_its_budget_up(self, bench: Workbench, mode: str):
        with bench.guarded(ONLY.with_limits(max_llm_calls=3, max_steps=5)) as scene:
            outcome = scene.play(mode, "finish3")
        assert outcome.error is None
        assert outcome.counts == Counts(requests=3, executions=2)
        assert violations(scene) == []


TOOLS = ONLY.with_limits(max_tool_calls=2)
SAME_TOOL = ONLY.with_limits(max_same_tool_calls=3)
CASES = {
    # The fifth step is a model call: it does not happen.
    "steps-model": (ONLY.with_limits(max_steps=4), "step_budget", "llm", Counts(2, 2)),
    # The sixth step is a tool call.
    "steps-tool": (ONLY.with_limits(max_steps=5), "step_budget", "tool", Counts(3, 2)),
    "tools": (TOOLS, "tool_call_budget", "tool", Counts(3, 2)),
    "one-tool": (
        ONLY.with_limits(max_calls_per_tool={"search": 2}),
        "tool_call_budget",
        "tool",
        Counts(3, 2),
    ),
    "equal-calls": (
        ONLY.with_limits(max_repeated_calls=3),
        "repeated_call_limit",
        "tool",
        Counts(4, 3),
    ),
    "same-tool": (SAME_TOOL, "same_tool", "tool", Counts(4, 3)),
}
"""Policy, the rule that speaks, the kind of step that it refuses, and what was spent before."""


def spent(bench: Workbench, kind: str, before: Counts) -> Counts:
    """Return what was spent in all: a refused tool call runs where nothing keeps it from that."""
    ran = kind == "tool" and kind not in bench.framework.vetoed
    return Counts(before.requests, before.executions + ran)


class TestOtherLimits:
    """Steps, tool calls, calls of one tool, and streaks."""

    @pytest.mark.parametrize("case", CASES)
    def test_exact_counts(self, bench: Workbench, mode: str, case: str):
        policy, rule, kind, before = CASES[case]
        counts = spent(bench, kind, before)
        if case == "equal-calls" and bench.framework.shows_arguments_late:
            counts = Counts(requests=4, executions=4)
        with bench.guarded(policy) as scene:
            outcome = scene.play(mode)
        report = aborted(outcome).report
        assert outcome.counts == counts
        assert (report.rule, report.status, report.steps) == (rule, "aborted", sum(counts))
        assert (report.model_calls, report.tool_calls) == counts
        assert [violation.action for violation in report.violations] == ["abort"]


class TestHiddenContent:
    """Without arguments and results on the spans, rules that compare calls are silent."""

    def test_silent_rules(self, bench: Workbench, mode: str):
        with bench.guarded(content=False) as scene:
            outcome = scene.play(mode)
        assert isinstance(outcome.error, bench.framework.capped)
        assert outcome.counts == bench.framework.at_cap
        assert scene.points("loopguard.violations") == []

    def test_limit_on_one_tool_in_a_row(self, bench: Workbench, mode: str):
        with bench.guarded(SAME_TOOL, content=False) as scene:
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "same_tool"
        assert outcome.counts == spent(bench, "tool", Counts(requests=4, executions=3))


__all__ = ["TestHiddenContent", "TestModelCalls", "TestOtherLimits"]
