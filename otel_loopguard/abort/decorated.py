"""Functions whose every call is a block: plain ones, coroutines and generators of either kind.

A generator has a context of its own, as if it were a thread: what is current in it, its run and its
spans, is not current for whoever pulls it, and it does not matter in which context that happens.
Only the task that waits for an item may be cancelled: whoever has one does work of its own.
"""

from __future__ import annotations

import contextvars
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from otel_loopguard.abort.cancel_task import NOBODY, RootTask
from otel_loopguard.slots import CURRENT, Slot

Function = TypeVar("Function", bound=Callable[..., Any])

Block = Callable[[], AbstractContextManager[object]]
"""Makes the block of one call."""


def decorated(function: Function, block: Block) -> Function:
    """Return a function that does the same in a block that each call makes anew.

    The block of a generator is entered when the first item is asked for, and left with the last.
    """
    for is_one, wrapped_in in _KINDS:
        # An object may be called like a function of any kind.
        if is_one(function) or is_one(getattr(type(function), "__call__", None)):  # noqa: B004
            return cast("Function", wrapped_in(function, block))
    return cast("Function", _calling(function, block))


def _calling(function: Callable[..., Any], block: Block) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return call


def _awaiting(function: Callable[..., Awaitable[Any]], block: Block) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return await function(*args, **kwargs)

    return call


def _yielding(
    function: Callable[..., Generator[Any, Any, Any]], block: Block
) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with block():
            # While it works the loop stands still, so a cancellation would reach somebody else.
            cast("Slot", CURRENT.get()).task = NOBODY
            return (yield from function(*args, **kwargs))

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inside = contextvars.copy_context()
        return (yield from _Apart(run(*args, **kwargs), inside))

    return call


def async_yielding(
    function: Callable[..., AsyncGenerator[Any, Any]], block: Block
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Return the same as `decorated`, of a function that makes asynchronous generators."""

    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inside = contextvars.copy_context()
        with _entered(block(), inside):
            slot, items = cast("Slot", inside[CURRENT]), function(*args, **kwargs)
            asked = _first_of(items)
            while True:
                slot.task = RootTask.running()
                try:
                    item = await _Await(asked, inside)
                except StopAsyncIteration:
                    return
                slot.task = NOBODY
                try:
                    asked = items.asend((yield item))
                except GeneratorExit:
                    slot.task = RootTask.running()
                    await _Await(items.aclose(), inside)
                    raise
                except BaseException as error:  # noqa: BLE001 -- the generator says what it means
                    asked = items.athrow(error)

    return call


_KINDS: tuple[tuple[Callable[[object], bool], Callable[..., Callable[..., Any]]], ...] = (
    (inspect.iscoroutinefunction, _awaiting),
    (inspect.isasyncgenfunction, async_yielding),
    (inspect.isgeneratorfunction, _yielding),
)


def _first_of(items: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Ask for the first item, and tell the loop nothing of the generator.

    Who closes all that are open at the end of a loop then closes the one around it alone.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return items.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


@contextmanager
def _entered(block: AbstractContextManager[object], inside: contextvars.Context) -> Generator[None]:
    """Enter a block in another context, and leave it there."""
    inside.run(block.__enter__)
    try:
        yield
    except BaseException as error:
        if not inside.run(block.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        inside.run(block.__exit__, None, None, None)


class _Apart(Generator[Any, Any, Any]):
    """A generator that runs in another context."""

    def __init__(self, generator: Generator[Any, Any, Any], inside: contextvars.Context) -> None:
        self._generator = generator
        self._inside = inside

    def send(self, value: Any, /) -> Any:
        return self._inside.run(self._generator.send, value)

    def throw(self, *thrown: Any) -> Any:
        return self._inside.run(self._generator.throw, *thrown)


class _Await:
    """Something to be awaited that runs in another context, and in the same task."""

    def __init__(self, awaitable: Awaitable[Any], inside: contextvars.Context) -> None:
        self._awaitable = awaitable
        self._inside = inside

    def __await__(self) -> Generator[Any, Any, Any]:
        return _Apart(self._awaitable.__await__(), self._inside)
