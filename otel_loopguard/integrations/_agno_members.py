"""What a member of a team of Agno has been stopped with, and how its team hears of it.

A member whose run is cancelled cancels that of its team, in the middle of the tool call by which it
was asked: the call would have no result, and the team's history no use. So the call ends with a
word that the member was stopped, and the team is stopped at its own next model call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextvars import ContextVar
from typing import Any

from agno.exceptions import RunCancelledException
from agno.tools.function import FunctionCall, FunctionExecutionResult

from otel_loopguard.abort.aborted import Refused, RunInterrupted
from otel_loopguard.registry import names

STOPS = (RunCancelledException, RunInterrupted)
"""What leaves the work for a tool call when a model call in it is refused."""


class ToolWork:
    """What is done for a tool call, be it by a member that is asked by it."""

    refusal: Refused | None = None
    """What a model call in it was refused with."""


_WORK: ContextVar[ToolWork | None] = ContextVar("otel_loopguard_agno_work", default=None)


class _Blocked(FunctionCall):
    """A tool call that is not made: it has failed, with its `error`."""

    def execute(self) -> FunctionExecutionResult:
        return FunctionExecutionResult(status="failure", error=self.error)

    async def aexecute(self) -> FunctionExecutionResult:
        return self.execute()


def blocked(made: FunctionCall, refusal: Refused) -> FunctionCall:
    """Return the same tool call, but for being made."""
    given = {"function": made.function, "arguments": made.arguments, "call_id": made.call_id}
    return _Blocked(**given, error=str(refusal))


def note(refusal: Refused, output: Any) -> None:
    """Write what a model call is refused with where the caller finds it, and the call it is in."""
    work = _WORK.get()
    if work is not None:
        work.refusal = refusal
    if output is not None:
        aborted = refusal.aborted if isinstance(refusal, RunInterrupted) else refusal
        noted = {names.RULE: aborted.report.rule, names.RUN_ID: aborted.run_id}
        output.metadata = {**(output.metadata or {}), **noted}


def each(items: Iterator[object], work: ToolWork) -> Generator[object]:
    """Yield what comes of some work; it is not what is done with that."""
    while True:
        token = _WORK.set(work)
        try:
            item = next(items)
        except StopIteration:
            return
        finally:
            _WORK.reset(token)
        yield item


async def read(answer: AsyncIterator[object]) -> AsyncGenerator[object]:
    """Yield the parts of an answer that is awaited, and what its work was stopped with."""
    work = ToolWork()
    while True:
        token = _WORK.set(work)
        try:
            part = await anext(answer)
        except StopAsyncIteration:
            return
        except STOPS:
            if work.refusal is None:
                raise
            part = str(work.refusal)
        finally:
            _WORK.reset(token)
        yield part
