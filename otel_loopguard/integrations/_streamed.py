"""Streams that are one run each, for frameworks that are traced by what is current around them.

Unlike in a decorated generator, nothing but the run is current in the stream alone: whoever traces
it leaves its spans in the context in which it has entered them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, cast

from otel_loopguard.abort import guarded_run
from otel_loopguard.abort.cancel_task import NOBODY, RootTask
from otel_loopguard.slots import CURRENT, Slot


def streamed(block: guarded_run, stream: Callable[[], Any]) -> Generator[Any, Any, None]:
    """Yield what a stream yields; its own code runs in the block, its consumer's does not."""
    outside = CURRENT.get()
    with block:
        inside = cast("Slot", CURRENT.get())
        inside.task = NOBODY  # while it works the loop stands still
        items = stream()
        try:
            while True:
                try:
                    item = next(items)
                except StopIteration:
                    return
                CURRENT.set(outside)
                yield item
                outside = CURRENT.get()
                CURRENT.set(inside)
        finally:
            CURRENT.set(inside)
            close: Callable[[], object] | None = getattr(items, "close", None)
            if close is not None:
                close()


async def astreamed(block: guarded_run, stream: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    """Do the same with one that is awaited; only a task that waits for an item is cancelled."""
    outside = CURRENT.get()
    with block:
        inside = cast("Slot", CURRENT.get())
        items = stream()
        try:
            while True:
                inside.task = RootTask.running()
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
                inside.task = NOBODY
                CURRENT.set(outside)
                yield item
                outside = CURRENT.get()
                CURRENT.set(inside)
        finally:
            CURRENT.set(inside)
            close: Callable[[], Awaitable[object]] | None = getattr(items, "aclose", None)
            if close is not None:
                await close()
