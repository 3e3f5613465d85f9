"""What sessions say of themselves: the line at their end and the file, from one process or many."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.plugin._sessions import LOOP, Sessions

TESTS = (
    LOOP
    + """
import openai
from otel_loopguard import LoopGuardSpanProcessor, RunAborted, guarded_run

def test_stopped(loopguard, model):
    loopguard.assert_stops(
        lambda: agent(model, five()), model=model, tools=[lookup], model_calls=5
    )

def test_without_guard(loopguard, model):
    loopguard.assert_stops(lambda: agent(model), model=model, tools=[lookup], timeout=0.2)

@pytest.mark.loopguard(
    recording="runs.jsonl", kind="model-evaluation", trips="llm_call_budget", at=11
)
def test_marked(model):
    agent(model, five())

def test_of_something_else():
    pass

@pytest.mark.loopguard(policy=Policy.none(), max_llm_calls=4, trips="llm_call_budget")
def test_client(loopguard, model_server):
    client = openai.OpenAI(base_url=model_server.url, api_key="none", max_retries=0)
    def run():
        with guarded_run("order-4711"):
            while True:
                client.chat.completions.create(
                    model="endless", messages=[{"role": "user", "content": "go"}]
                )
    loopguard.assert_stops(run, model_calls=4, rule="llm_call_budget", timeout=60)

def test_client_without_guard(loopguard, model_server):
    client = openai.OpenAI(base_url=model_server.url, api_key="none", max_retries=0)
    def run():
        while True:
            client.chat.completions.create(
                model="endless", messages=[{"role": "user", "content": "go"}]
            )
    loopguard.assert_stops(run, model_calls=4, timeout=0.5)
"""
)
SUMMARY = ["loopguard: 3 runs stopped (3 llm_call_budget), 0 completed, 2 guards missing"]


def in_git(directory: Path, *command: str) -> str:
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(
        (*git, *command), cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["one-process", "xdist"])
def test_the_file_says_what_came_of_each_test(sessions: Sessions, spread: tuple[str, ...]) -> None:
    in_git(sessions.directory, "init", "--quiet")
    in_git(sessions.directory, "add", ".")
    in_git(sessions.directory, "commit", "--quiet", "--message", "x")
    revision = in_git(sessions.directory, "rev-parse", "HEAD")

    session = sessions.run(TESTS, "--loopguard-evidence=found/evidence.json", *spread)

    assert session.outcomes == {
        "test_stopped": "passed",
        "test_without_guard": "failed",
        "test_marked": "passed",
        "test_of_something_else": "passed",
        "test_client": "passed",
        "test_client_without_guard": "failed",
    }, session.text
    assert session.summary == SUMMARY
    found = sessions.evidence("found/evidence.json")
    assert found["source"] == {"revision": revision, "is_dirty": True}
    assert found["python"] == platform.python_version()
    assert found["packages"]["openai"] == version("openai")
    assert "--loopguard-evidence=found/evidence.json" in found["command"]
    assert {
        kind: [each["test"].partition("::")[2] for each in tests]
        for kind, tests in found["tests"].items()
    } == {
        "unit": ["test_stopped", "test_without_guard"],
        "adapter": ["test_client", "test_client_without_guard"],
        "model-evaluation": ["test_marked"],
    }
    stopped, without = found["tests"]["unit"]
    assert stopped["outcome"] == "passed"
    assert stopped["models"] == ["EndlessModel"]
    (trial,) = stopped["trials"]
    assert trial["expected"] == {
        "stops": True,
        "rule": None,
        "model_calls": 5,
        "tool_executions": None,
    }
    assert trial["observed"]["model_calls"] == trial["observed"]["tool_executions"] == 5
    assert trial["observed"]["rule"] == "llm_call_budget"
    (missed,) = without["trials"]
    assert without["outcome"] == "failed"
    assert missed["observed"]["overdue"] is True
    assert missed["observed"]["guards_seen"] == 0
    (marked,) = found["tests"]["model-evaluation"]
    assert marked["recording"] == "runs.jsonl"
    assert marked["expected_trip"] == marked["trips"][0] == {"rule": "llm_call_budget", "step": 11}
    client, _ = found["tests"]["adapter"]
    assert client["models"] == ["ModelServer"]


def test_without_a_repository_there_is_no_revision(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", os.fspath(sessions.directory.parent))

    sessions.run("def test_x(): ...", "--loopguard-evidence=evidence.json")

    found = sessions.evidence()
    assert found["source"] == {"revision": None, "is_dirty": None}
    assert found["tests"] == {"unit": [], "adapter": [], "model-evaluation": []}
