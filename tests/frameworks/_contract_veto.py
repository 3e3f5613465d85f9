"""The contract: what is refused at the start of its span, where that lets an exception out.

And what a refusal is that `except Exception` does not catch.
"""

from __future__ import annotations

import pytest

from otel_loopguard import Policy, RunAborted, RunInterrupted, abort_of, guarded_run
from otel_loopguard.registry.names import STEP_PREVENTED
from tests.frameworks._expected import REPEATED, aborted, ended_runs, found, stops, violations
from tests.frameworks._workbench import Counts, Scene, Workbench

TOOLS = Policy.none().with_limits(max_tool_calls=2)


def prevented(scene: Scene) -> list[str]:
    """Return the names of the spans that say that their call was not made; all have failed."""
    spans = [span for span in scene.spans if (span.attributes or {}).get(STEP_PREVENTED)]
    assert {span.status.status_code.name for span in spans} <= {"ERROR"}
    return [span.name for span in spans]


class TestVeto:
    """A refused call is not made where its span lets the exception out; else it is counted."""

    def test_tool_call(self, bench: Workbench, mode: str):
        is_made = "tool" not in bench.framework.vetoed
        with bench.guarded(TOOLS) as scene:
            outcome = scene.play(mode)
        assert outcome.counts == Counts(3, 2 + is_made)
        report = aborted(outcome).report
        assert (report.model_calls, report.tool_calls) == outcome.counts
        tripped_at = ("tool_call_budget", "abort", 3, 6)
        assert [found(each) for each in violations(scene)] == [tripped_at]
        assert {each["on"] for each in violations(scene)} <= bench.framework.spans_told_on
        if not is_made:
            is_asked_again = bench.framework.answers_vetoes
            by_gate = is_asked_again and "llm" not in bench.framework.vetoed
            model_spans = [*bench.framework.model_spans] if is_asked_again and not by_gate else []
            assert prevented(scene) == [bench.framework.tool_span, *model_spans]
            asked = {"veto", "gate"} if by_gate else {"veto"}
            assert stops(scene) == {(stop, "ok"): 1 for stop in asked}
        assert ended_runs(scene) == {("aborted", True): 1}

    def test_model_call(self, bench: Workbench, mode: str):
        with bench.guarded() as scene:
            outcome = scene.play(mode)
        assert outcome.counts == REPEATED
        is_made = "llm" not in bench.framework.vetoed
        model_spans = [] if is_made else [*bench.framework.model_spans]
        assert prevented(scene) == model_spans
        assert stops(scene) == {(bench.framework.stopped_by, "ok"): 1}

    def test_left_out(self, bench: Workbench, mode: str):
        with bench.guarded(TOOLS, abort=("gate", "cancel")) as scene:
            outcome = scene.play(mode)
        assert outcome.counts == Counts(3, 3)
        assert prevented(scene) == []
        assert stops(scene) == {("gate", "ok"): 1}


class TestBaseForm:
    """`RunInterrupted` ends the run as `RunAborted` does, and becomes that in a block."""

    def test_counts(self, bench: Workbench, mode: str):
        stumbles = mode in bench.framework.stumbles
        wraps = RuntimeError if mode in bench.framework.wraps else RunInterrupted
        got = AttributeError if stumbles else wraps
        with bench.guarded(abort_exception="base") as scene, pytest.raises(got) as raised:
            raise scene.play(mode).error or AssertionError
        assert scene.counts() == REPEATED
        stopped = abort_of(raised.value)
        assert (stopped is None) is stumbles
        assert stopped is None or stopped.report.rule == "repeated_result"

    def test_in_a_guarded_run(self, bench: Workbench, mode: str):
        with bench.guarded(abort_exception="base") as scene:
            outcome = scene.play(mode, around=guarded_run())
        assert type(outcome.error) is RunAborted
        assert outcome.error.report.rule == "repeated_result"
        assert outcome.counts == REPEATED


__all__ = ["TestBaseForm", "TestVeto"]
