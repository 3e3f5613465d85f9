"""A span processor on every tracer provider of the process: those there are, and those to come.

Applications, Logfire, Phoenix, Langfuse and Traceloop each set up a provider of their own, before
us or after; some keep one that is not the global one. All of them are the SDK's or are made of it,
so the processor joins where the SDK makes a provider.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import wrapt
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from otel_loopguard.forks import renew_in_children

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span
    from opentelemetry.trace import TracerProvider as AnyTracerProvider

_logger = logging.getLogger(__name__)


class Attachment(SpanProcessor):
    """Passes what happens on any provider on to one processor, until it is taken off.

    Providers offer no way to take a processor off, and shut theirs down with themselves: the
    processor goes on for the others, and once it is taken off only this empty hull stays behind.

    Args:
        processor: told of the spans of all providers. Shut down when it is taken off.

    """

    def __init__(self, processor: SpanProcessor) -> None:
        self.processor: SpanProcessor | None = processor
        self._met: WeakValueDictionary[int, AnyTracerProvider] = WeakValueDictionary()
        """By identity: not every provider can be hashed."""
        self._lock = threading.Lock()
        renew_in_children(self, "_lock", threading.Lock)

    def attach(self, provider: AnyTracerProvider | None = None) -> bool:
        """Watch a provider (the global one if `None`); say whether it is one that can be watched.

        A provider is joined once, however often this is called. One that cannot be joined is told
        of in the log: the application must get it all the same.
        """
        try:
            return self._join(trace.get_tracer_provider() if provider is None else provider)
        except Exception:
            which = "the global one" if provider is None else repr(type(provider).__qualname__)
            _logger.exception("the loop guard cannot watch a tracer provider: %s", which)
            return False

    def _join(self, provider: AnyTracerProvider) -> bool:
        join = _way_into(provider)
        if join is None:
            return False
        with self._lock:
            is_new = self._met.get(id(provider)) is not provider
            self._met[id(provider)] = provider
        if is_new:
            join(self)
        return True

    def watch_new_ones(self) -> None:
        """Watch each provider of the SDK that is made from now on, as soon as it is made."""
        _watchers.add(self)

    def leave_new_ones(self) -> None:
        """Watch no provider that is made from now on; those that are there are watched still."""
        _watchers.discard(self)

    def take_off(self) -> None:
        """Leave every provider, and shut the processor down."""
        self.leave_new_ones()
        processor, self.processor = self.processor, None
        if processor is not None:
            processor.shutdown()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Pass a span that starts on."""
        processor = self.processor  # another thread may take it off meanwhile
        if processor is not None:
            processor.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Pass a span that has ended on."""
        processor = self.processor
        if processor is not None:
            processor.on_end(span)

    def shutdown(self) -> None:
        """Do nothing: one provider is shut down, others may go on."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the processor."""
        processor = self.processor
        return processor is None or processor.force_flush(timeout_millis)


class _Watchers:
    """Those who want to hear of new providers. The SDK is patched while there are any."""

    def __init__(self) -> None:
        self._all: list[Attachment] = []
        self._patches: dict[int, wrapt.FunctionWrapper[..., None]] = {}
        """Ours that are there, by identity: more than one where somebody has patched over ours."""
        self._lock = threading.Lock()
        renew_in_children(self, "_lock", threading.Lock)

    def add(self, watcher: Attachment) -> None:
        with self._lock:
            self._all = [*self._all, watcher]
            if self._outermost() is None:
                patch = wrapt.FunctionWrapper(vars(TracerProvider)["__init__"], self._made)
                self._patches[id(patch)] = patch
                TracerProvider.__init__ = patch  # type: ignore[method-assign]

    def discard(self, watcher: Attachment) -> None:
        with self._lock:
            self._all = [each for each in self._all if each is not watcher]
            # Where somebody else has patched over it since, it stays.
            while not self._all and (patch := self._outermost()) is not None:
                del self._patches[id(patch)]
                TracerProvider.__init__ = patch.__wrapped__  # type: ignore[method-assign]

    def _outermost(self) -> wrapt.FunctionWrapper[..., None] | None:
        """Return our patch, if nobody has patched over it or put it away."""
        return self._patches.get(id(vars(TracerProvider).get("__init__")))

    def _made(
        self,
        init: Callable[..., None],
        provider: TracerProvider,
        args: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> None:
        init(*args, **named)
        for watcher in self._all:
            watcher.attach(provider)


_watchers = _Watchers()


def _way_into(provider: AnyTracerProvider) -> Callable[[SpanProcessor], None] | None:
    """Return what adds a processor to a provider; `None` if nothing does.

    That of the SDK itself comes first: a subclass's own may remove what is there, as that of
    Phoenix does with its default exporter.
    """
    if isinstance(provider, TracerProvider):
        return lambda processor: TracerProvider.add_span_processor(provider, processor)
    with suppress(Exception):
        add: object = getattr(provider, "add_span_processor", None)
        return cast("Callable[[SpanProcessor], None]", add) if callable(add) else None
    return None
