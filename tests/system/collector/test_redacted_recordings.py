"""Recordings of real frameworks, redacted: what was said stays in, and a replay sees the loops."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard.replay import ReplayedRun
from tests._command import command
from tests._recordings import FOLDERS, Recording, written_scripts
from tests._redacted import Gateway, first_trip, redacting, replayed

CANARIES = (
    *("weather in paris", "no results for", "value of alpha", "final answer", "you help"),
    *("you are helpful", "backend down", "traceback", "alpha"),
)
"""What people, models and tools said in the recordings, in lower case."""

WITHOUT_TOOL_SPANS = {
    "crewai-traceloop",
    *(each for each in FOLDERS if each.startswith("raw-") and "nocontent" not in each),
}
"""Their calls are known from messages only."""
USAGE_IN_MESSAGES = {"haystack-native"}

LOOPS = [
    Recording(folder, script)
    for folder in FOLDERS
    for script in sorted({*written_scripts(folder)} & {"endless", "varying"})
]
OTHERS = [Recording("agno-openinference", each) for each in ("alternate", "error_tool", "finish3")]

every_folder = pytest.mark.parametrize("folder", FOLDERS)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with redacting(tmp_path_factory.mktemp("gateway")) as started:
        for recording in (*LOOPS, *OTHERS):  # all at once: what is no agent's comes out later
            send(started, recording)
        yield started


def send(gateway: Gateway, recording: Recording) -> None:
    requests = [json.loads(line) for line in recording.lines()]
    gateway.collector.post(
        {"resourceSpans": [each for request in requests for each in request["resourceSpans"]]}
    )


def redacted(gateway: Gateway, recording: Recording) -> bytes:
    """Return what of a recording has come out, as lines of OTLP/JSON."""
    counted = Counter(record.trace_id for record in recording.ended())
    for trace_id, spans in counted.items():
        gateway.spans(trace_id, spans)
    lines = {line: None for each in counted for line in gateway.lines.of(f"{each:032x}")}
    return b"".join(lines)


def figures(run: ReplayedRun, folder: str) -> tuple[int, ...]:
    tokens = () if folder in USAGE_IN_MESSAGES else (run.input_tokens, run.output_tokens)
    calls = () if folder in WITHOUT_TOOL_SPANS else (run.tool_calls,)
    return (run.steps, run.model_calls, *calls, *tokens)


@every_folder
def test_nothing_that_was_said_leaves_and_the_loop_is_seen(
    gateway: Gateway, folder: str, tmp_path: Path
):
    """At the same step, by the same rule; none where the arguments differ each time."""
    for recording in [each for each in LOOPS if each.folder == folder]:
        written = redacted(gateway, recording)
        assert written
        assert not [each for each in CANARIES if each.encode() in written.lower()], recording
        before = replayed(b"".join(recording.lines()), tmp_path)
        after = replayed(written, tmp_path)
        assert [figures(run, folder) for run in after] == [figures(run, folder) for run in before]
        seen = [first_trip(run) for run in after]
        if folder in WITHOUT_TOOL_SPANS:
            assert not any(seen)
        else:
            assert seen == [first_trip(run) for run in before], recording


@pytest.mark.parametrize("recording", OTHERS, ids=str)
def test_other_loops_are_seen_and_a_run_that_finishes_is_left_alone(
    gateway: Gateway, recording: Recording, tmp_path: Path
):
    before = replayed(b"".join(recording.lines()), tmp_path)
    after = replayed(redacted(gateway, recording), tmp_path)
    assert [first_trip(run) for run in after] == [first_trip(run) for run in before]
    assert [first_trip(run) is None for run in after] == [recording.script == "finish3"]


def test_the_command_replays_what_the_gateway_writes(gateway: Gateway, tmp_path: Path):
    written = redacted(gateway, OTHERS[0])
    result = command("replay", "--json", "--strict", "-", cwd=tmp_path, stdin=written)
    assert result.returncode == 0, result.stderr.decode()
    [run] = map(json.loads, result.stdout.splitlines())
    assert run["tripped"]
    found: list[Any] = [each["rule"] for each in run["violations"] if each["action"] == "abort"]
    assert found[0] == "cyclic_calls"
