"""Where frameworks begin a run that no span of theirs may last for: the guard opens one around it.

Nothing is opened where the calling code is in a run already, be it that of a `guarded_run`, of an
agent's span or of the baggage.
"""

from __future__ import annotations

import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import AbstractContextManager, aclosing, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from opentelemetry import trace

from otel_loopguard.abort.aborted import RunAborted, abort_of
from otel_loopguard.abort.boundary import guarded_run
from otel_loopguard.abort.decorated import async_yielding
from otel_loopguard.abort.patches import Entry, Patches, Wrapped

if TYPE_CHECKING:
    from otel_loopguard.runs import Run
    from otel_loopguard.slots import Slot


class Whereabouts(Protocol):
    """Knows the runs that there are."""

    def are_a_run(self) -> bool:
        """Say whether the calling code is in a run already that is more than a trace's root."""
        ...

    def stopped(self) -> Run | None:
        """Return the run that the calling code is in, if it was stopped."""
        ...


class EntryRun(guarded_run):
    """A block that nobody has asked for: it leaves the spans as they are."""

    __slots__ = ()

    def _show(self, slot: Slot) -> None:
        slot.outside_id = trace.get_current_span().get_span_context().span_id


_logger = logging.getLogger(__name__)
_logged: set[str] = set()


def guard_entries(whereabouts: Whereabouts) -> None:
    """Open a run at every entry point from now on that is called outside of any."""
    _patches.keep(whereabouts)


def leave_entries(whereabouts: Whereabouts) -> None:
    """Open none for this guard; with the last one gone, put every module back as it was."""
    _patches.leave(whereabouts)


def _is_to_be_left() -> bool:
    """Say whether a call opens no run: it is in one already, or no guard is there."""
    keepers = _patches.keepers
    try:
        return not keepers or any(each.are_a_run() for each in keepers)
    except Exception as error:  # noqa: BLE001 -- a fault of ours keeps no call from being made
        _log_once("a call that begins a run is left as it is", error)
        return True


def run_block() -> AbstractContextManager[object]:
    """Return the block that a call is made in: the run that begins with it, if one does."""
    return nullcontext() if _is_to_be_left() else EntryRun()


# What is wrapped may be a wrapper of somebody else's, which does not look like what it wraps.


def _function(
    wrapped: Wrapped, _owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    with run_block():
        return wrapped(*args, **kwargs)


async def _coroutine(
    wrapped: Wrapped, _owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    with run_block():
        return await wrapped(*args, **kwargs)


def _generator(
    wrapped: Wrapped, _owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    def generator() -> AsyncGenerator[object, Any]:
        items: object = wrapped(*args, **kwargs)
        if isinstance(items, AsyncGenerator):
            return cast("AsyncGenerator[object, Any]", items)
        return _each_of(cast("AsyncIterable[object]", items))

    return _telling(generator()) if _is_to_be_left() else async_yielding(generator, EntryRun)()


async def _each_of(items: AsyncIterable[object]) -> AsyncGenerator[object]:
    """Yield what is no generator, and is closed like one if it can be."""
    try:
        async for item in items:
            yield item
    finally:
        close: Callable[[], Awaitable[object]] | None = getattr(items, "aclose", None)
        if close is not None:
            await close()


async def _telling(items: AsyncGenerator[object, Any]) -> AsyncGenerator[object]:
    """Yield the same, with `RunAborted` for what leaves it when its run has been stopped."""
    async with aclosing(items):
        try:
            async for item in items:
                yield item
        except Exception as error:
            run = None if abort_of(error) else _stopped()
            if run is None:
                raise
            raise RunAborted(run.report(), run.id) from error


def _stopped() -> Run | None:
    try:
        runs = [each.stopped() for each in _patches.keepers]
    except Exception as error:  # noqa: BLE001 -- then the caller gets what there is
        _log_once("what a run has raised is left as it is", error)
        return None
    return next((run for run in runs if run is not None), None)


def _log_once(message: str, error: Exception) -> None:
    if message not in _logged:
        _logged.add(message)
        _logger.error(message, exc_info=error)


def _autogen(module: ModuleType) -> Iterator[Entry]:
    # Each message between the members of a team begins a trace, and what one of them raises comes
    # out as a text. `run` comes by here too.
    yield Entry(module.BaseGroupChat, "run_stream", _generator)


def _crewai(module: ModuleType) -> Iterator[Entry]:
    # Who instruments it has a span around `kickoff` at most. The other ways to begin end up here.
    yield Entry(module.Crew, "kickoff", _function)
    yield Entry(module.Crew, "akickoff", _coroutine)
    yield Entry(module.Agent, "kickoff", _function)
    yield Entry(module.Agent, "kickoff_async", _coroutine)


ENTRY_POINTS: Mapping[str, Callable[[ModuleType], Iterator[Entry]]] = {
    "autogen_agentchat.teams": _autogen,
    "crewai": _crewai,
}
"""Those of each framework, by the module that has them once it is imported."""

_patches: Patches[Entry, Whereabouts] = Patches(
    ENTRY_POINTS,
    lambda entry: entry.called,
    "runs that begin in %s are not told from one another",
)
