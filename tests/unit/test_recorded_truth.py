"""What the guard counts in recordings of real frameworks, against what really happened."""

from __future__ import annotations

import pytest

from otel_loopguard.canonical import UNKNOWN
from tests._played import Found, Played, live, replayed
from tests._recordings import Recording, recordings, true_folders
from tests._truth import EXCEPTIONS, What, reason_of

TRUE = [recording for recording in recordings() if recording.folder in true_folders()]
COUNTED = [recording for recording in TRUE if recording.tokens is not None]
HAPPENED = [recording for recording in TRUE if recording.written_events()]
HEALTHY = ("finish3", "varying", "truncated", "empty", "poll")


def check(recording: Recording, what: What, ours: object, true: object) -> None:
    """Compare a count with the truth; where an exception is named, they must differ."""
    reason = reason_of(recording, what)
    if reason is None:
        assert ours == true
    else:
        assert ours != true, f"{recording}: right after all, although {reason}"


@pytest.mark.parametrize("recording", TRUE, ids=str)
def test_model_requests_and_tool_executions(recording: Recording) -> None:
    counts, truth = replayed(recording).counts, recording.truth
    assert truth is not None
    check(recording, "model requests", counts.model_requests, truth.model_requests)
    check(recording, "tool executions", counts.tool_executions, truth.tool_executions)


@pytest.mark.parametrize("recording", COUNTED, ids=str)
def test_tokens(recording: Recording) -> None:
    check(recording, "tokens", replayed(recording).tokens, recording.tokens)


@pytest.mark.parametrize("recording", TRUE, ids=str)
def test_one_agent_is_one_run(recording: Recording) -> None:
    check(recording, "runs", len(replayed(recording).reports), 1)


def test_every_exception_is_about_some_recording() -> None:
    unused = [each for each in EXCEPTIONS if not any(map(each.is_about, TRUE))]
    assert unused == []


def must_trip(recording: Recording, played: Played) -> bool:
    """Say whether what the spans show is enough, by the rules that hold for any framework."""
    assert recording.truth is not None
    calls, script = recording.truth.tool_executions, recording.script
    tools = [step for step in played.steps if step.kind == "tool"]
    arguments = bool(tools) and all(step.arguments is not UNKNOWN for step in tools)
    errors = bool(tools) and all(step.error is not None for step in tools)
    results = bool(tools) and all(
        step.result is not UNKNOWN or step.error is not None for step in tools[:-1]
    )
    if script.startswith("endless"):
        return arguments and calls >= (5 if results else 8)
    if script.startswith("alternate"):
        return arguments and calls >= 6
    if script.startswith("error_tool"):
        return errors and calls >= (4 if arguments else 6)
    return False


@pytest.mark.parametrize("recording", TRUE, ids=str)
def test_a_loop_trips_where_it_can_be_seen(recording: Recording) -> None:
    played = replayed(recording)
    if must_trip(recording, played):
        assert played.trips


@pytest.mark.parametrize(
    "recording", [each for each in TRUE if each.script.startswith(HEALTHY)], ids=str
)
def test_a_healthy_run_is_left_alone(recording: Recording) -> None:
    assert replayed(recording).trips == frozenset()


@pytest.mark.parametrize("in_context", [True, False], ids=["one-context", "no-context"])
@pytest.mark.parametrize("recording", HAPPENED, ids=str)
def test_live_equals_replay(recording: Recording, *, in_context: bool) -> None:
    happened, recorded = live(recording, in_context=in_context), replayed(recording)
    check(recording, "live counts", happened.counts, recorded.counts)
    assert happened.tokens == recorded.tokens
    check(recording, "live decisions", happened.found, recorded.found)
