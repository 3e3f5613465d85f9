"""Hears the spans of every tracer provider of the process, for those who want them for a while."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from otel_loopguard.attachment import Attachment

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span


class SpanTap(SpanProcessor):
    """Passes spans on to the processors that want them now; mostly there are none.

    Providers offer no way to take a processor off: one tap stays on each for good, however many
    tests there are.
    """

    def __init__(self) -> None:
        self._processors: tuple[SpanProcessor, ...] = ()
        self._attachment = Attachment(self)

    def open(self, processor: SpanProcessor) -> None:
        """Let a processor have the spans of every provider that is there or comes."""
        if not self._processors:
            self._attachment.watch_new_ones()
        self._attachment.attach()
        for provider in _providers():
            self._attachment.attach(provider)
        self._processors = (*self._processors, processor)

    def close(self, processor: SpanProcessor) -> None:
        """Let it have no more."""
        self._processors = tuple(each for each in self._processors if each is not processor)
        if not self._processors:
            self._attachment.leave_new_ones()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Pass a span that starts on; a guard among the processors may refuse it."""
        for processor in self._processors:
            processor.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Pass a span that has ended on."""
        for processor in self._processors:
            processor.on_end(span)


@cache
def span_tap() -> SpanTap:
    """Return the one tap of the process."""
    return SpanTap()


def _providers() -> list[TracerProvider]:
    """Find the providers that are there and not the global one: nobody keeps a list of them."""
    kinds = [TracerProvider, *_below(TracerProvider)]
    return [each for each in gc.get_referrers(*kinds) if isinstance(each, TracerProvider)]


def _below(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_below(child))]
