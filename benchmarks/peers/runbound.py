"""runbound: functions decorated with `@runbound.tool`, called in a session of their own.

It is one engine per process: beginning a run sets it up anew and ends the run before. What it
writes down without stopping anything (its graded policy) is a warning.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import runbound

from benchmarks.peers._adapter import Call, Contender, Verdict

SESSIONS = itertools.count()
CURRENT = contextlib.ExitStack()


class ToolFailedError(Exception):
    """Stands for what the tool raised."""


class Run:
    def __init__(self, **options: object) -> None:
        self._noted: list[object] = []
        self._tools: dict[str, Callable[..., str]] = {}
        self._now: Call | None = None
        self._turn: int | None = None
        CURRENT.close()
        runbound.init(on_anomaly="raise", on_event=self._noted.append, **options)
        CURRENT.enter_context(runbound.session(f"run:{next(SESSIONS)}"))

    def judge(self, call: Call) -> Verdict:
        self._now = call
        self._noted.clear()
        tool = self._tools.get(call.tool) or self._declare(call.tool)
        try:
            if call.turn != self._turn:
                self._turn = call.turn
                runbound.record_call("gpt-4o", tokens_in=0, tokens_out=0)
            tool(**call.arguments)
        except runbound.ExecutionRefused:
            return "stop"
        except ToolFailedError:
            pass
        return "warn" if self._noted else "go"

    def _declare(self, name: str) -> Callable[..., str]:
        @runbound.tool(name=name)
        def tool(**_: object) -> str:
            call = self._now
            assert call is not None
            if call.failed:
                raise ToolFailedError(call.result)
            return call.result

        self._tools[name] = tool
        return tool


CONTENDERS = (
    Contender(
        name="runbound",
        options='init(on_anomaly="raise"), graded',
        start=lambda: Run().judge,
    ),
    Contender(
        name="runbound",
        options='the same, on_loop="break", all four shapes',
        start=lambda: (
            Run(on_loop="break", loop_shapes=("repeat", "sequence", "retry", "stall")).judge
        ),
        timed=False,
    ),
)
