"""What `fake-model` prints: where it is, each request, and what there was."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from otel_loopguard.cli.json_lines import print_json
from otel_loopguard.cli.tables import new_table, of, print_table, printable

if TYPE_CHECKING:
    from otel_loopguard.testing.model_server import ModelRequest

_ANSWERED = 200
_NOT_FOUND = 404
_CLIENTS = (("OPENAI_BASE_URL", "/v1"), ("ANTHROPIC_BASE_URL", ""), ("GOOGLE_GEMINI_BASE_URL", ""))
"""What the official clients read their base address from, and what stands behind the root in it."""
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


class Started(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="started"):
    """What is served, and where; the first line with `--json`."""

    script: str
    root: str
    strict: bool
    cap: int | None
    variables: Mapping[str, str] = {}
    """What to set, so that the official clients ask here."""


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="request"):
    """One request; with `--json`, a line for each."""

    number: int
    api: str
    model: str
    script: str
    stream: bool
    tool_results: int
    status: int
    input_tokens: int
    output_tokens: int


class Lost(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="wrong_path"):
    """A request that was none of the model's, so is not counted; with `--json`, a line for each."""

    status: int = _NOT_FOUND
    message: str
    """What it was told."""


class Stopped(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="stopped"):
    """What there was; the last line with `--json`."""

    requests: int
    answered: int
    tool_results: int
    """Different ones."""
    input_tokens: int
    output_tokens: int
    scripts: Mapping[str, int]
    """Requests of each script."""


class Log:
    """Prints what happens, and adds it up; requests come from the server's thread."""

    def __init__(self, *, as_json: bool) -> None:
        """Print for people, or JSON."""
        # Not an event: what sets one in a signal handler may wait for what it has interrupted.
        self._over: SimpleQueue[None] = SimpleQueue()
        self._as_json = as_json
        self._started = threading.Event()
        self._sums: Counter[str] = Counter()
        self._scripts: Counter[str] = Counter()
        self._failure: OSError | None = None

    def end(self) -> None:
        """Let there be nothing more to wait for; for any thread, and for signal handlers."""
        self._over.put(None)

    def is_over_within(self, seconds: float) -> bool:
        """Wait for the end, at most so long, and say whether it has come."""
        try:
            self._over.get(timeout=seconds)
        except Empty:
            return False
        return True

    def print_scripts(self, descriptions: Mapping[str, str]) -> None:
        """Print what can be played."""
        if self._as_json:
            for name, says in descriptions.items():
                print_json(_Listed(script=name, plays=says))
            return
        table = new_table()
        table.add_column("script", no_wrap=True)
        table.add_column("what the model does")
        for name, says in descriptions.items():
            table.add_row(name, says)
        print_table(Console(highlight=False, markup=False, emoji=False), table)

    def start(self, started: Started) -> None:
        """Print where the server is."""
        variables = {name: f"{started.root}{path}" for name, path in _CLIENTS}
        if self._as_json:
            print_json(msgspec.structs.replace(started, variables=variables))
        else:
            bounds = "strict" if started.strict else "not strict"
            if started.cap is not None:
                bounds += f", at most {of(started.cap, 'request')} a script"
            _print(
                f"A scripted model plays {started.script!r} at {started.root} ({bounds}).",
                "Let a client ask it, with any key:",
                *(f"  export {name}={address}" for name, address in variables.items()),
                f"  export {' '.join(f'{name}=none' for name in _KEYS)}",
                "Ask for a model with the name of a script, and it plays that one. Ctrl-C ends it.",
            )
        self._started.set()

    def add(self, request: ModelRequest) -> None:
        """Print a request that was answered."""
        self._started.wait()
        usage = request.usage
        answered = Answered(
            number=request.number,
            api=request.api,
            model=request.model,
            script=request.script,
            stream=request.stream,
            tool_results=request.tool_results,
            status=request.status,
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
        )
        self._sums["requests"] += 1
        self._sums["answered"] += answered.status == _ANSWERED
        self._sums["input_tokens"] += answered.input_tokens
        self._sums["output_tokens"] += answered.output_tokens
        self._scripts[answered.script] += 1
        try:
            self._print_request(answered)
        except OSError as error:  # nobody reads any more: that ends the command, not an answer
            self._failure = error
            self.end()

    def add_lost(self, text: str) -> None:
        """Print that a request went to a path at which nothing is served, and what it was told."""
        self._started.wait()
        try:
            if self._as_json:
                print_json(Lost(message=text))
            else:
                _print(f"{_NOT_FOUND} {text}")
        except OSError as error:
            self._failure = error
            self.end()

    def _print_request(self, request: Answered) -> None:
        if self._as_json:
            print_json(request)
            return
        streamed = ", streamed" if request.stream else ""
        _print(
            f"#{request.number} {request.status} {request.script} by {request.api}, model "
            f"{request.model!r}{streamed}: {of(request.tool_results, 'tool result')} in the request"
        )

    def stop(self, tool_results: int) -> None:
        """Print what there was; raises what kept requests from being printed."""
        if self._failure is not None:
            raise self._failure
        stopped = Stopped(
            requests=self._sums["requests"],
            answered=self._sums["answered"],
            tool_results=tool_results,
            input_tokens=self._sums["input_tokens"],
            output_tokens=self._sums["output_tokens"],
            scripts=dict(self._scripts),
        )
        if self._as_json:
            print_json(stopped)
            return
        each = ", ".join(f"{count:,} of {name!r}" for name, count in stopped.scripts.items())
        _print(
            f"{of(stopped.requests, 'request')}{f' ({each})' if each else ''}, "
            f"{stopped.answered:,} answered; {of(stopped.tool_results, 'tool result')}; "
            f"{stopped.input_tokens:,} input and {stopped.output_tokens:,} output tokens"
        )


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    script: str
    plays: str


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    sys.stdout.flush()
