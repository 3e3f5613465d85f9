"""The contract: a limit of N lets N through, and the run ends before its next model request.

Nothing that is built in keeps a tool call from running that the model has already asked for: where
the limit is met by a tool call, that call runs and is counted.
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
        assert [each["on"] for each in violations(scene)] == [bench.framework.agent_span]
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


CASES = {
    # The fifth step is a model call: it does not happen.
    "steps-model": (ONLY.with_limits(max_steps=4), "step_budget", Counts(2, 2), 4),
    # The sixth step is a tool call: it runs.
    "steps-tool": (ONLY.with_limits(max_steps=5), "step_budget", Counts(3, 3), 6),
    "tools": (ONLY.with_limits(max_tool_calls=2), "tool_call_budget", Counts(3, 3), 6),
    "one-tool": (
        ONLY.with_limits(max_calls_per_tool={"search": 2}),
        "tool_call_budget",
        Counts(3, 3),
        6,
    ),
    "equal-calls": (
        ONLY.with_limits(max_repeated_calls=3),
        "repeated_call_limit",
        Counts(4, 4),
        8,
    ),
    "same-tool": (ONLY.with_limits(max_same_tool_calls=3), "same_tool", Counts(4, 4), 8),
}
"""Policy, the rule that speaks, what was spent in all, and the steps that were counted."""


class TestOtherLimits:
    """Steps, tool calls, calls of one tool, and streaks."""

    @pytest.mark.parametrize("case", CASES)
    def test_exact_counts(self, bench: Workbench, mode: str, case: str):
        policy, rule, counts, steps = CASES[case]
        with bench.guarded(policy) as scene:
            outcome = scene.play(mode)
        report = aborted(outcome).report
        assert outcome.counts == counts
        assert (report.rule, report.status, report.steps) == (rule, "aborted", steps)
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
        with bench.guarded(ONLY.with_limits(max_same_tool_calls=3), content=False) as scene:
            outcome = scene.play(mode)
        assert aborted(outcome).report.rule == "same_tool"
        assert outcome.counts == Counts(requests=4, executions=4)


__all__ = ["TestHiddenContent", "TestModelCalls", "TestOtherLimits"]
