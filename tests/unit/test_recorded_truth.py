"""What the guard counts in recordings of real frameworks, against what really happened."""

from __future__ import annotations

import pytest

from otel_loopguard.canonical import UNKNOWN
from scripts.recordings_page import PAGE, figures, page
from tests._played import Played, replayed
from tests._recordings import Recording, recordings, true_folders
from tests._truth import EXCEPTIONS, Departure, reason_of

TRUE = [recording for recording in recordings() if recording.folder in true_folders()]
HEALTHY = ("finish3", "varying", "truncated", "empty", "poll")


@pytest.mark.parametrize("recording", TRUE, ids=str)
def test_what_is_counted_is_the_truth(recording: Recording) -> None:
    shown = {
        what: figure
        for what, figure in figures(recording).items()
        if reason_of(recording, what) is None
    }
    assert {what: ours for what, (ours, _) in shown.items()} == {
        what: true for what, (_, true) in shown.items()
    }


@pytest.mark.parametrize(
    "departure", EXCEPTIONS, ids=lambda each: f"{each.folder}-{each.script}-{each.what[0]}"
)
def test_every_exception_is_one(departure: Departure) -> None:
    about = [recording for recording in TRUE if departure.is_about(recording)]
    for what in departure.what:
        if not what.startswith("live"):
            compared = [figures(each)[what] for each in about if what in figures(each)]
            assert any(ours != true for ours, true in compared), what


def test_the_page_is_what_the_code_counts() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make recordings-page`"


def must_trip(recording: Recording, played: Played) -> bool:
    """Say whether what the spans show is enough, by the rules that hold for any framework."""
    assert recording.truth is not None
    calls, script = recording.truth.tool_executions, recording.script
    tools = [step for step in played.steps if step.kind == "tool"]
    if not tools or len(played.reports) > 1:
        return False
    arguments = all(step.arguments is not UNKNOWN for step in tools)
    errors = all(step.error is not None for step in tools)
    # What the last call of all has come to is on no span where only the next request would tell.
    results = all(step.result is not UNKNOWN or step.error is not None for step in tools[:-1])
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


@pytest.mark.parametrize("recording", TRUE, ids=str)
def test_calls_without_spans_are_those_that_were_made_and_have_none(recording: Recording) -> None:
    """All of them where they can be told at all, none where a tool of the run has a span."""
    assert recording.truth is not None
    played = replayed(recording)
    have_spans = any(step.kind == "tool" and not step.spanless for step in played.steps)

    can_be = {0} if have_spans else {0, recording.truth.tool_executions}
    assert played.calls_without_spans in can_be


@pytest.mark.parametrize("recording", TRUE, ids=str)
def test_what_is_added_up_while_runs_go_on_is_what_they_come_to(recording: Recording) -> None:
    played = replayed(recording)
    totals = played.totals

    assert sum(totals.steps.values()) == sum(report.steps for report in played.reports)
    spent = totals.spent.values()
    tokens = sum(each.input_tokens for each in spent), sum(each.output_tokens for each in spent)
    assert tokens == played.tokens
    cost_usd = sum(report.cost_usd for report in played.reports)
    assert sum(each.cost_usd for each in spent) == pytest.approx(cost_usd)
