"""Sessions of pytest that a test starts: agents that are guarded, and agents that are not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

LOOP = '''
import asyncio
import pytest
from otel_loopguard import LoopGuard, LoopGuardError, Policy, Step
from otel_loopguard.testing import EndlessModel, ScriptedModel, recording_tool


@recording_tool
def lookup(order):
    return "not yet"


def agent(model, guard=None):
    """Ask the model and call its tool, as long as the guard lets it."""

    def may(step):
        decision = None if guard is None else guard.check(step)
        if decision is not None and not decision.allowed:
            raise LoopGuardError(decision)

    while True:
        may(Step(kind="llm", name="m"))
        turn = model()
        for call in turn.calls:
            may(Step(kind="tool", name=call.name, arguments=call.arguments))
            lookup(**call.arguments)
        if not turn.calls:
            return turn.text


def five():
    return LoopGuard(Policy.none(), max_llm_calls=5)


@pytest.fixture
def model():
    return EndlessModel("lookup", {"order": 7})
'''
"""An agent in a loop of its own, which asks an engine."""

SPANS = '''
import json
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, install, uninstall
from otel_loopguard.testing import EndlessModel, ScriptedModel, recording_tool

provider = TracerProvider()
tracer = provider.get_tracer("agents")


@recording_tool
def lookup(order):
    return "not yet"


def span(operation, name):
    """Make a span as an instrumentation does that lets exceptions out where its spans start."""
    what = {"invoke_agent": "agent", "execute_tool": "tool"}.get(operation, "request.model")
    key = f"gen_ai.{what}" if what == "request.model" else f"gen_ai.{what}.name"
    said = {"gen_ai.operation.name": operation, key: name, "loopguard.vetoable": True}
    return tracer.start_as_current_span(f"{operation} {name}", attributes=said)


def agent(model):
    with span("invoke_agent", "scout"):
        while True:
            with span("chat", "m"):
                turn = model()
            for call in turn.calls:
                with span("execute_tool", call.name) as own:
                    own.set_attribute("gen_ai.tool.call.arguments", json.dumps(call.arguments))
                    own.set_attribute("gen_ai.tool.call.result", lookup(**call.arguments))
            if not turn.calls:
                return turn.text


@pytest.fixture
def model():
    return EndlessModel("lookup", {"order": 7})
'''
"""An agent that makes spans on a provider which is not the global one."""


class Sessions:
    """Starts sessions in a directory of its own, each in a process of its own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.directory: Path = pytester.path
        pytester.makeini(
            "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n"
            # A plugin that is left out does not know its options.
            "filterwarnings =\n error\n ignore:Unknown config option\n"
        )

    def run(self, source: str, *arguments: str) -> Session:
        """Run a file of tests."""
        self._pytester.makepyfile(test_inner=source)
        options = ("-p", "no:cacheprovider", "-rA", *arguments)
        return Session(self._pytester.runpytest_subprocess(*options))

    def evidence(self, name: str = "evidence.json") -> dict[str, Any]:
        """Read the evidence that a session has written."""
        read: dict[str, Any] = json.loads((self.directory / name).read_text())
        return read


class Session:
    """What a session came to."""

    def __init__(self, result: pytest.RunResult) -> None:
        self.text = result.stdout.str() + result.stderr.str()
        self.outcomes = {name: outcome.lower() for outcome, name in _ENDED.findall(self.text)}
        """How each test ended, by its name."""

    def failure_of(self, test: str) -> str:
        """Return what is printed where a test fails, without pytest's marks."""
        found = re.search(
            _PRINTED.format(test=re.escape(test)), self.text, re.MULTILINE | re.DOTALL
        )
        assert found is not None, self.text
        return _MARK.sub("", found[1])

    @property
    def summary(self) -> list[str]:
        """The line of the plugin."""
        return [line for line in self.text.splitlines() if line.startswith("loopguard: ")]


_ENDED = re.compile(r"^(PASSED|FAILED|ERROR) .*::(\S+?)(?: - .*)?$", re.MULTILINE)
_PRINTED = r"^_+ (?:ERROR at setup of )?{test} _+$(.*?)^(?:___+ |=+ )"
_MARK = re.compile(r"^E(?: {7}|[ \t]*$)", re.MULTILINE)
