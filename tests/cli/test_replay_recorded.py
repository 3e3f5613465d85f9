"""Recorded traces of real frameworks, replayed: what really happened is what is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests._command import ROOT, command
from tests._recordings import Recording, recordings

FOLDERS = (
    "langchain-genai",
    "langchain-genai-nocontent",
    "langchain-oi",
    "langchain-tl",
    "openai-agents-genai",
    "openai-agents-genai-nocontent",
    "openai-agents-oi",
    "openai-agents-tl",
    "pydantic-ai-v5",
    "pydantic-ai-v5-nocontent",
)
NOT_COUNTED_BY_THE_TOOLS = ("agent_as_tool", "badargs")
"""The span of an agent that is called as a tool, and that of a call with refused arguments."""
RECORDED = [
    recording
    for recording in recordings(*FOLDERS)
    if recording.script not in NOT_COUNTED_BY_THE_TOOLS
]
WITHOUT_CONTENT = "-nocontent"


def replay(*arguments: str, stdin: bytes = b"", cwd: Path = ROOT) -> list[dict[str, Any]]:
    result = command("replay", "--json", "--strict", *arguments, stdin=stdin, cwd=cwd)
    assert (result.stderr.decode(), result.returncode) == ("", 0)
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[Recording, dict[str, Any]]:
    """Return the one run of each recording, all replayed at once."""
    folder = tmp_path_factory.mktemp("recorded")
    names = {str(recording): recording for recording in RECORDED}
    for name, recording in names.items():
        (folder / name).write_bytes(b"".join(recording.lines()))
    runs = replay(*names, cwd=folder)
    assert [run["source"] for run in runs] == list(names), "one run a file"
    return {names[run["source"]]: run for run in runs}


def scripts(name: str, *, content: bool | None = None) -> list[Any]:
    """Return the recordings of a script, of those with or without message content or both."""
    return [
        pytest.param(recording, id=str(recording))
        for recording in RECORDED
        if recording.script.startswith(name)
        and content in (None, not recording.folder.endswith(WITHOUT_CONTENT))
    ]


Runs = dict[Recording, dict[str, Any]]


@pytest.mark.parametrize("key", scripts(""))
def test_counts_are_those_of_the_server_and_the_tools(replayed: Runs, key: Recording):
    run = replayed[key]
    assert (run["model_calls"], run["tool_calls"]) == key.truth
    assert run["steps"] == run["model_calls"] + run["tool_calls"]


@pytest.mark.parametrize("key", scripts("finish3"))
def test_a_healthy_run_is_left_alone(replayed: Runs, key: Recording):
    run = replayed[key]
    assert (run["tripped"], run["violations"]) == (False, [])
    assert run["status"] == "complete"
    streamed = key.folder.startswith("langchain") and key.script == "finish3_stream"
    tokens = (0, 0) if streamed else key.tokens  # LangChain has none where it streams
    assert (run["input_tokens"], run["output_tokens"]) == tokens


@pytest.mark.parametrize("key", scripts("poll"))
def test_polling_with_changing_results_does_not_trip(replayed: Runs, key: Recording):
    assert replayed[key]["violations"] == []


@pytest.mark.parametrize("key", scripts("endless", content=True))
def test_an_endless_run_trips_at_its_fifth_equal_result(replayed: Runs, key: Recording):
    run = replayed[key]
    trip, *later = [found for found in run["violations"] if found["action"] == "abort"]
    assert (trip["rule"], trip["step"], trip["count"]) == ("repeated_result", 10, 5)
    assert all(found["step"] > 10 for found in later)
    assert run["tripped"]
    assert run["saved"]["steps"] == run["steps"] - 10


@pytest.mark.parametrize("key", scripts("endless", content=False))
def test_calls_that_cannot_be_compared_are_not_equal(replayed: Runs, key: Recording):
    assert replayed[key]["violations"] == []


def test_a_budget_stops_what_no_rule_can_see():
    endless = lines_of("openai-agents-genai-nocontent", "endless")
    policy = ROOT / "tests" / "testdata" / "replay" / "three_model_calls.toml"
    [run] = replay("--policy", str(policy), "-", stdin=b"".join(endless))
    assert [
        (found["rule"], found["step"], found["phase"], found["count"])
        for found in run["violations"]
    ] == [("llm_call_budget", 7, "pre", 4)]
    assert run["saved"]["steps"] == run["steps"] - 6


def lines_of(folder: str, script: str) -> list[bytes]:
    return Recording(folder, script).lines()


def test_the_order_of_lines_and_other_traces_beside_it_change_nothing():
    endless = lines_of("openai-agents-genai", "endless")
    healthy = lines_of("langchain-genai", "finish3")
    alone = replay("-", stdin=b"".join(endless)) + replay("-", stdin=b"".join(healthy))
    mixed = replay("-", stdin=b"".join([*healthy, *endless][::-1]))
    assert sorted(mixed, key=repr) == sorted(alone, key=repr)


def test_a_line_exported_twice_counts_once():
    lines = lines_of("openai-agents-genai", "endless")
    assert replay("-", stdin=b"".join(lines * 2)) == replay("-", stdin=b"".join(lines))


def test_one_line_of_all_spans_is_the_same_as_a_line_each():
    lines = lines_of("openai-agents-genai", "endless")
    together = {
        "resourceSpans": [part for line in lines for part in json.loads(line)["resourceSpans"]]
    }
    assert replay("-", stdin=json.dumps(together).encode()) == replay("-", stdin=b"".join(lines))
