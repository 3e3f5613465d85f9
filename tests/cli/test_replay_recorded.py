"""Recorded traces of real frameworks, replayed: what really happened is what is counted."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "testdata" / "traces"
TRUTH: dict[str, dict[str, dict[str, int]]] = json.loads((TRACES / "truth.json").read_text())
RECORDED = [
    (folder, script)
    for folder, scripts in TRUTH.items()
    for script in scripts
    if (TRACES / folder / f"{script}.otlp.jsonl.gz").exists()
]
WITHOUT_CONTENT = "-nocontent"


def replay(*arguments: str, stdin: bytes = b"") -> list[dict[str, Any]]:
    result = subprocess.run(
        [sys.executable, "-m", "otel_loopguard.cli", "replay", "--json", "--strict", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=TRACES,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert (result.stderr.decode(), result.returncode) == ("", 0)
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def replayed() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the one run of each recording, all replayed at once."""
    names = {f"{folder}/{script}.otlp.jsonl.gz": (folder, script) for folder, script in RECORDED}
    runs = replay(*names)
    assert [run["source"] for run in runs] == list(names), "one run a file"
    return {names[run["source"]]: run for run in runs}


def scripts(name: str, *, content: bool | None = None) -> list[Any]:
    """Return the recordings of a script, of those with or without message content or both."""
    return [
        pytest.param((folder, script), id=f"{folder}-{script}")
        for folder, script in RECORDED
        if script.startswith(name) and content in (None, not folder.endswith(WITHOUT_CONTENT))
    ]


Runs = dict[tuple[str, str], dict[str, Any]]


@pytest.mark.parametrize("key", scripts(""))
def test_counts_are_those_of_the_server_and_the_tools(replayed: Runs, key: tuple[str, str]):
    folder, script = key
    run, truth = replayed[key], TRUTH[folder][script]
    assert (run["model_calls"], run["tool_calls"]) == (
        truth["model_requests"],
        truth["tool_executions"],
    )
    assert run["steps"] == run["model_calls"] + run["tool_calls"]


@pytest.mark.parametrize("key", scripts("finish3"))
def test_a_healthy_run_is_left_alone(replayed: Runs, key: tuple[str, str]):
    run = replayed[key]
    assert (run["tripped"], run["violations"]) == (False, [])
    assert run["status"] == "complete"
    assert (run["input_tokens"], run["output_tokens"]) == (390, 60)


@pytest.mark.parametrize("key", scripts("poll"))
def test_polling_with_changing_results_does_not_trip(replayed: Runs, key: tuple[str, str]):
    assert replayed[key]["violations"] == []


@pytest.mark.parametrize("key", scripts("endless", content=True))
def test_an_endless_run_trips_at_its_fifth_equal_result(replayed: Runs, key: tuple[str, str]):
    run = replayed[key]
    trip, *later = [found for found in run["violations"] if found["action"] == "abort"]
    assert (trip["rule"], trip["step"], trip["count"]) == ("repeated_result", 10, 5)
    assert all(found["step"] > 10 for found in later)
    assert run["tripped"]
    assert run["saved"]["steps"] == run["steps"] - 10


@pytest.mark.parametrize("key", scripts("endless", content=False))
def test_calls_that_cannot_be_compared_are_not_equal(replayed: Runs, key: tuple[str, str]):
    assert replayed[key]["violations"] == []


def test_a_budget_stops_what_no_rule_can_see():
    name = "openai-agents-genai-nocontent/endless.otlp.jsonl.gz"
    policy = ROOT / "tests" / "testdata" / "replay" / "three_model_calls.toml"
    [run] = replay("--policy", str(policy), name)
    assert [
        (found["rule"], found["step"], found["phase"], found["count"])
        for found in run["violations"]
    ] == [("llm_call_budget", 7, "pre", 4)]
    assert run["saved"]["steps"] == run["steps"] - 6


def lines_of(name: str) -> list[bytes]:
    return gzip.decompress((TRACES / name).read_bytes()).splitlines(keepends=True)


def test_the_order_of_lines_and_other_traces_beside_it_change_nothing():
    endless = lines_of("openai-agents-genai/endless.otlp.jsonl.gz")
    healthy = lines_of("langchain-genai/finish3.otlp.jsonl.gz")
    alone = replay("-", stdin=b"".join(endless)) + replay("-", stdin=b"".join(healthy))
    mixed = replay("-", stdin=b"".join([*healthy, *endless][::-1]))
    assert sorted(mixed, key=repr) == sorted(alone, key=repr)


def test_a_line_exported_twice_counts_once():
    lines = lines_of("openai-agents-genai/endless.otlp.jsonl.gz")
    assert replay("-", stdin=b"".join(lines * 2)) == replay("-", stdin=b"".join(lines))


def test_one_line_of_all_spans_is_the_same_as_a_line_each():
    lines = lines_of("openai-agents-genai/endless.otlp.jsonl.gz")
    together = {
        "resourceSpans": [part for line in lines for part in json.loads(line)["resourceSpans"]]
    }
    assert replay("-", stdin=json.dumps(together).encode()) == replay("-", stdin=b"".join(lines))
