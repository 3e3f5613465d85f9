"""`otel-loopguard fake-model` as people and scripts run it: in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import openai
import pytest

from otel_loopguard.testing.scripts import DESCRIPTIONS
from tests._command import command

ROOT = Path(__file__).parents[2]
GO: Any = [{"role": "user", "content": "go"}]
TOOLS: Any = [{"type": "function", "function": {"name": "search"}}]


@contextmanager
def served(*arguments: str, cwd: Path) -> Generator[tuple[subprocess.Popen[str], IO[str]]]:
    """Run the command until the block is left."""
    with subprocess.Popen(
        [sys.executable, "-m", "otel_loopguard.cli", "fake-model", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.kill()


def ask(address: str) -> Any:
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
        return client.chat.completions.create(model="m", messages=GO, tools=TOOLS)


def ask_streamed(address: str, model: str) -> int:
    """Return in how many parts the answer came."""
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
        chunks = client.chat.completions.create(model=model, messages=GO, tools=TOOLS, stream=True)
        return sum(1 for _ in chunks)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_says_what_to_set_then_each_request_then_what_there_was(
    tmp_path: Path, how: signal.Signals
) -> None:
    with served("--script", "cycle:2", "--cap", "2", cwd=tmp_path) as (process, out):
        head = [out.readline() for _ in range(7)]
        (address,) = re.findall(r"export OPENAI_BASE_URL=(\S+)", "".join(head))
        ask(address)
        assert ask_streamed(address, "o3") > 1
        with pytest.raises(openai.BadRequestError):
            ask(address)
        process.send_signal(how)
        rest, complaints = process.communicate(timeout=60)
    root = address.removesuffix("/v1")
    assert head == [
        f"A scripted model plays 'cycle:2' at {root} (strict, at most 2 requests a script).\n",
        "Let a client ask it, with any key:\n",
        f"  export OPENAI_BASE_URL={root}/v1\n",
        f"  export ANTHROPIC_BASE_URL={root}\n",
        f"  export GOOGLE_GEMINI_BASE_URL={root}\n",
        "  export OPENAI_API_KEY=none ANTHROPIC_API_KEY=none GEMINI_API_KEY=none\n",
        "Ask for a model with the name of a script, and it plays that one. Ctrl-C ends it.\n",
    ]
    assert rest.splitlines() == [
        "#1 200 cycle:2 by openai-chat, model 'm': 0 tool results in the request",
        "#2 200 cycle:2 by openai-chat, model 'o3', streamed: 0 tool results in the request",
        "#3 400 cycle:2 by openai-chat, model 'm': 0 tool results in the request",
        "3 requests (3 of 'cycle:2'), 2 answered; 0 tool results; 200 input and 40 output tokens",
    ]
    assert (process.returncode, complaints) == (0, "")


def test_json_is_one_object_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[[turns]]\ntext = "done"\n')
    with served("--script", "a.toml", "--no-strict", "--json", cwd=tmp_path) as (process, out):
        started = json.loads(out.readline())
        assert ask(started["variables"]["OPENAI_BASE_URL"]).choices[0].message.content == "done"
        asked = json.loads(out.readline())
        with pytest.raises(openai.BadRequestError, match="has 1 turns, and request 2 wants"):
            ask(started["variables"]["OPENAI_BASE_URL"])
        refused = json.loads(out.readline())
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert (started["event"], started["script"], started["strict"], started["cap"]) == (
        "started",
        "a.toml",
        False,
        None,
    )
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", started["root"])
    assert asked == {
        "event": "request",
        "number": 1,
        "api": "openai-chat",
        "model": "m",
        "script": "a.toml",
        "stream": False,
        "tool_results": 0,
        "status": 200,
        "input_tokens": 100,
        "output_tokens": 20,
    }
    assert (refused["number"], refused["status"], refused["input_tokens"]) == (2, 400, 0)
    assert json.loads(rest) == {
        "event": "stopped",
        "requests": 2,
        "answered": 1,
        "tool_results": 0,
        "input_tokens": 100,
        "output_tokens": 20,
        "scripts": {"a.toml": 2},
    }


@pytest.mark.parametrize("as_json", [False, True], ids=["people", "json"])
def test_a_request_to_a_wrong_path_is_printed(tmp_path: Path, *, as_json: bool) -> None:
    """Who has forgotten the `/v1` looks here first."""
    with served(*(["--json"] if as_json else []), cwd=tmp_path) as (process, out):
        head = out.readline() if as_json else "".join(out.readline() for _ in range(7))
        (root,) = set(re.findall(r"http://127\.0\.0\.1:\d+", head))
        said = httpx.post(f"{root}/chat/completions").json()["error"]["message"]
        line = out.readline()
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate(timeout=60)
    assert "serves nothing at POST '/chat/completions'; expected POST to one of" in said
    if as_json:
        assert json.loads(line) == {"event": "wrong_path", "status": 404, "message": said}
        assert json.loads(rest)["requests"] == 0
    else:
        assert line == f"404 {said}\n"
        assert rest.startswith("0 requests, 0 answered; ")
    assert (process.returncode, complaints) == (0, "")


SIGNALLED_WHILE_IT_WAITS = """
import signal
import sys

from otel_loopguard.cli import fake_model
from otel_loopguard.cli.fake_model_log import Log


def at_each_line(frame, event, argument):
    if frame.f_code.co_name != "end":
        signal.raise_signal(signal.SIGINT)
    return at_each_line


log = Log(as_json=True)
with fake_model._until_told(log):
    sys.settrace(at_each_line)
    over = log.is_over_within(60)
    sys.settrace(None)
assert over
"""


def test_a_signal_ends_the_wait_at_whichever_place_it_comes(tmp_path: Path) -> None:
    """A lock that the wait holds just then must not be asked for by the signal's handler."""
    ended = subprocess.run(
        [sys.executable, "-c", SIGNALLED_WHILE_IT_WAITS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        text=True,
        timeout=30,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_port_can_be_named_and_be_taken(tmp_path: Path) -> None:
    with served("--json", cwd=tmp_path) as (_, out):
        root: str = json.loads(out.readline())["root"]
        port = root.rpartition(":")[2]
        result = command("fake-model", "--port", port, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, b"")
        said = f"port {port} of 127.0.0.1 cannot be had: Address already in use\n"
        assert result.stderr.decode() == said
    with served("--json", "--port", port, cwd=tmp_path) as (_, out):
        assert json.loads(out.readline())["root"] == root


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    with served("--json", cwd=tmp_path) as (process, out):
        address = json.loads(out.readline())["variables"]["OPENAI_BASE_URL"]
        out.close()
        ask(address)
        assert process.wait(timeout=60) == 1, "as the other commands end"
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--script", "gpt-4o"], "script 'gpt-4o' does not exist; expected one of 'endless', "),
        (["--script", "cycle:x"], "script 'cycle:x' cannot be played; expected 'cycle:N' with a "),
        (["--script", "none.toml"], "none.toml: it cannot be read: No such file or directory\n"),
        (["--script", "bad.jsonl"], "bad.jsonl:2: Input data was truncated\nbad.jsonl:3: "),
    ],
    ids=["unknown name", "bad number", "no file", "bad lines"],
)
def test_what_cannot_be_played_is_named(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n{\n[]\n')
    result = command("fake-model", *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().startswith(said)


@pytest.mark.parametrize("option", ["--port=65536", "--port=-1", "--cap=0", "--speed=3"])
def test_an_option_that_cannot_be_is_refused(tmp_path: Path, option: str) -> None:
    result = command("fake-model", option, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert option.partition("=")[0] in result.stderr.decode()


def test_what_can_be_played_is_listed(tmp_path: Path) -> None:
    people = command("fake-model", "--list", cwd=tmp_path)
    rows = people.stdout.decode().splitlines()
    assert [row.split()[0] for row in rows] == ["script", *DESCRIPTIONS]
    assert all(says in people.stdout.decode() for says in DESCRIPTIONS.values())
    programs = command("fake-model", "--list", "--json", cwd=tmp_path)
    assert [json.loads(line) for line in programs.stdout.splitlines()] == [
        {"script": name, "plays": says} for name, says in DESCRIPTIONS.items()
    ]
