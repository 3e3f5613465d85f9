"""The rooms of the testing kit, one by one; `tests/plugin` has them together, in real sessions."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from otel_loopguard import UNKNOWN, LoopGuard, Policy, RunAborted, Step, ToolCall
from otel_loopguard.testing import Capture, EndlessModel, assert_completes, assert_stops
from otel_loopguard.testing.evidence import source_of
from otel_loopguard.testing.folding import folded
from otel_loopguard.testing.marking import Marking, MarkingError, marking_of
from otel_loopguard.testing.observer import SPANS
from otel_loopguard.testing.run_to_end import play
from otel_loopguard.testing.run_tree import DEPTH
from otel_loopguard.testing.step_labels import label_of
from otel_loopguard.testing.tested import RunsOfTest, runs_of_test, summary
from tests._tracing import ONE_RULE, Traced

SEARCH = Step(kind="tool", name="search", arguments={"q": "x"})
SECRET_CALL = ToolCall(name="a", arguments={"k": "secret"})


# ------------------------------------------------------------------------------- what is folded


@pytest.mark.parametrize(
    ("word", "left"),
    [
        ("", []),
        ("ab", ["a", "b"]),
        ("aa", ["a", "a"]),
        ("aaa", ["a", "... 2 more like this"]),
        ("abababab", ["a", "b", "... 3 more like these 2"]),
        ("xababab", ["x", "a", "b", "... 2 more like these 2"]),
        ("aaab", ["a", "... 2 more like this", "b"]),
        ("aabaabaab", ["a", "a", "b", "... 2 more like these 3"]),
        ("aaabaaabaaab", ["a", "a", "a", "b", "... 2 more like these 4"]),
        ("a" * 2001, ["a", "... 2,000 more like this"]),
    ],
    ids=lambda value: value[:9] or "nothing" if isinstance(value, str) else None,
)
def test_what_repeats_is_folded(word: str, left: list[str]) -> None:
    assert folded(word) == left


# ----------------------------------------------------------------------------- what a line says


@pytest.mark.parametrize(
    ("step", "plain", "open_"),
    [
        (SEARCH, "tool search(#", 'tool search({"q":"x"}) = ?'),
        (
            Step(kind="tool", name="a", result="secret", error="KeyError: secret"),
            "tool a(?) failed: KeyError #",
            "tool a(?) failed: KeyError: secret",
        ),
        (Step(kind="tool", name="a", error="(secret)"), "tool a(?) failed: ? #", ""),
        (
            Step(
                kind="llm", model="m", tool_calls=(ToolCall(name="a", arguments={"k": "secret"}),)
            ),
            "model m asks for a(#",
            'model m asks for a({"k":"secret"})',
        ),
        (Step(kind="llm", name="m", tool_calls=(), output="secret"), "model m answers #", ""),
        (Step(kind="llm", name="m", finish_reasons=("length",)), "model m (length)", ""),
        (Step(kind="llm", output=UNKNOWN), "model ?", "model ?"),
        (Step(kind="agent", name="scout"), "agent scout", "agent scout"),
    ],
    ids=["call", "failed", "odd-error", "asks", "answers", "cut", "unknown", "agent"],
)
def test_contents_are_fingerprints_unless_they_are_asked_for(
    step: Step, plain: str, open_: str
) -> None:
    line = label_of(step, contents=False)

    assert line.startswith(plain)
    assert "secret" not in line
    assert label_of(step, contents=True).startswith(open_)


def test_equal_values_have_equal_fingerprints() -> None:
    swapped = Step(kind="tool", name="a", arguments={"x": 1, "y": 2})
    same = Step(kind="tool", name="a", arguments='{"y": 2.0, "x": 1}')
    other = Step(kind="tool", name="a", arguments={"x": 1, "y": 3})

    lines = [label_of(step, contents=False) for step in (swapped, same, other)]

    assert lines[0] == lines[1] != lines[2]


# -------------------------------------------------------------------------------- what is drawn


def test_agents_in_agents_without_end_are_drawn_to_a_depth(process: Traced) -> None:
    with Capture() as capture:
        process.tracer.start_span("not a step").end()
        opened = [process.agent(f"agent-{level}") for level in range(3 * DEPTH)]
        for each in opened:
            each.__enter__()
        with process.tool():
            pass
        for each in reversed(opened):
            each.__exit__(None, None, None)

    lines = capture.tree().splitlines()

    assert len(lines) == 3 * DEPTH + 1
    assert max(line.index("─ ") for line in lines) == 3 * DEPTH + 1
    assert not any("not a step" in line for line in lines)


def test_a_model_call_shown_twice_is_drawn_once(process: Traced) -> None:
    with Capture() as capture, process.agent(), process.chat(), process.chat():
        pass

    assert capture.tree().count("model m") == 1
    assert capture.tree().startswith("└─ agent scout: 1 model call, 0 tool calls\n")


def test_what_is_kept_is_bounded_and_said(process: Traced) -> None:
    with Capture() as capture, process.agent():
        for _ in range(SPANS):
            with process.tool():
                pass

    assert len(capture.spans) == SPANS
    assert capture.tree().startswith(f"(of the latest {SPANS:,} spans)\n")


def test_nothing_is_heard_once_it_is_left(process: Traced) -> None:
    process.guard(ONE_RULE)
    with Capture() as capture:
        pass

    with process.agent():
        process.work(5)

    assert (capture.spans, capture.decisions, capture.reports) == ((), (), ())


# --------------------------------------------------------------------------- how a run is ended


def test_a_run_that_goes_on_is_ended_by_refusal_first() -> None:
    model = EndlessModel("search")

    def run() -> None:
        while True:
            model()

    end = play(run, 0.05, lambda: model.refuse("enough"))

    assert end.is_overdue
    assert not end.still_runs
    assert type(end.error).__name__ == "ModelRefusedError"


def test_a_run_that_swallows_refusals_is_interrupted() -> None:
    threads: list[threading.Thread] = []

    def run() -> None:
        threads.append(threading.current_thread())
        while True:
            try:
                while True:
                    pass
            except Exception:  # noqa: BLE001, S110 -- that is what is tried
                pass

    end = play(run, 0.05, lambda: None)

    assert end.is_overdue
    assert not end.still_runs
    assert not threads[0].is_alive()


def test_what_waits_in_foreign_code_is_told_of_and_left() -> None:
    over = threading.Event()

    end = play(over.wait, 0.05, lambda: None)
    over.set()

    assert end.still_runs


def test_a_run_has_the_context_of_its_caller(process: Traced) -> None:
    def run() -> None:
        with process.tool():
            pass

    with process.agent():
        assert_completes(run)

    tool, agent = process.spans
    assert tool.parent is not None
    assert agent.context is not None
    assert tool.parent.span_id == agent.context.span_id


def test_a_task_of_another_loop_is_cancelled() -> None:
    async def run() -> None:
        await asyncio.Event().wait()

    end = play(run, 0.05, lambda: None)

    assert isinstance(end.error, asyncio.CancelledError)
    assert not end.still_runs


# ------------------------------------------------------------------------------ what is asserted


def test_without_pytest_it_is_asserted_too(process: Traced) -> None:
    process.guard(ONE_RULE, mode="enforce")

    report = assert_stops(process.loop_for_ever, rule="repeated_result", model_calls=5)

    assert report is not None
    assert report.status == "aborted"
    with pytest.raises(AssertionError, match="the run was stopped by repeated_result"):
        assert_completes(process.loop_for_ever)


def test_a_framework_may_end_quietly(process: Traced) -> None:
    process.guard(ONE_RULE, mode="enforce")

    def run() -> None:
        with suppress(RunAborted):
            process.loop_for_ever()

    assert_stops(run, rule="repeated_result")


def test_a_stop_may_be_handed_back() -> None:
    report = LoopGuard(Policy.none()).report()

    assert assert_stops(lambda: RunAborted(report)) == report


def test_what_another_run_did_before_is_no_matter() -> None:
    model = EndlessModel("search")
    model()

    with Capture() as capture:
        capture.assert_completes(model, model=model, model_calls=1)
        with pytest.raises(AssertionError, match="1 model calls, not 2"):
            capture.assert_completes(model, model=model, model_calls=2)


# ------------------------------------------------------------------- what a marker says, and more


def test_markers_are_laid_over_each_other_the_nearest_first() -> None:
    marking = marking_of([((), {"at": 3}), ((), {"at": 5, "trips": "step_budget", "max_steps": 2})])

    assert marking is not None
    assert (marking.trips, marking.at) == ("step_budget", 3)
    assert marking.policy == Policy().with_limits(max_steps=2)
    assert marking_of([]) is None
    assert marking_of([((), {})]) == Marking()


def test_a_recording_is_named() -> None:
    with pytest.raises(MarkingError, match="recording=3 is no name; expected that of a file"):
        marking_of([((), {"recording": 3})])


def test_a_run_that_several_guards_have_seen_is_one(process: Traced) -> None:
    process.guard(ONE_RULE)
    process.guard(Policy.none())
    engine = LoopGuard(Policy.none(), max_tool_calls=1)
    with Capture() as capture, process.agent():
        process.work(1)
        engine.check(SEARCH)
        engine.check(SEARCH)
    with capture, process.agent():
        process.work(5)

    found = runs_of_test("t", capture, None, "passed")

    assert len(capture.runs()) == 5
    assert found.stopped == ("tool_call_budget",)
    assert (found.completed, found.observed_only) == (0, 1)
    assert [trip.rule for trip in found.trips] == ["tool_call_budget", "repeated_result"]


def test_a_summary_adds_up() -> None:
    def one(*stopped: str, completed: int = 0, missing: int = 0) -> RunsOfTest:
        return RunsOfTest(
            test="t",
            kind="unit",
            models=(),
            stopped=stopped,
            completed=completed,
            guards_missing=missing,
        )

    assert summary([]) == summary([one()]) == ""
    assert summary([one("a", "b"), one("b", completed=5), one(missing=1)]) == (
        "loopguard: 3 runs stopped (2 b, 1 a), 5 completed, 1 guard missing"
    )


def test_where_there_is_no_git_there_is_no_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    source = source_of(tmp_path)

    assert (source.revision, source.is_dirty) == (None, None)
