"""The doctor beside a guard: a span processor that watches for a while, and says what it saw."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from opentelemetry.sdk.trace import SpanProcessor

from otel_loopguard.dialects import Dialect, read_step
from otel_loopguard.doctor.examination import examine
from otel_loopguard.doctor.recognition import recognition_of
from otel_loopguard.doctor.report import Report, report_on
from otel_loopguard.doctor.sightings import AtStart, Sighting
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.live_spans import record_of
from otel_loopguard.sampling import drop_warning, sampler_of
from otel_loopguard.slots import CURRENT
from otel_loopguard.steps import UNKNOWN
from otel_loopguard.surroundings import run_in_baggage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

SPANS = 4_096
"""Spans that are kept, ended ones and open ones each; past that the oldest is forgotten."""

_logger = logging.getLogger(__name__)


class Doctor(SpanProcessor):
    """Keeps the spans of a provider, with their content, until it is asked what they show.

        doctor = Doctor()
        provider.add_span_processor(doctor)
        ...  # run your agent once or twice
        report = doctor.report()

    It is for a look at a process, not for good: what it keeps is never sent anywhere, but it is
    memory. Nothing ever leaves its callbacks.

    Args:
        spans: how many spans it keeps.
        dialects: how spans are read, as the guard has them; those installed and built in if `None`.

    """

    def __init__(self, *, spans: int = SPANS, dialects: Iterable[Dialect] | None = None) -> None:
        self._spans = spans
        self._dialects = chosen(dialects)
        self._lock = threading.Lock()
        self._open: OrderedDict[int, Sighting] = OrderedDict()
        self._ended: deque[Sighting] = deque()
        self._sampling: str | None = None
        self._forgotten = 0
        self._is_broken = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Take in a span that starts."""
        try:
            record = record_of(span)
            found, step = recognition_of(record, self._dialects), read_step(record, self._dialects)
            at_start = AtStart(
                dialect="" if found is None else found.dialect,
                arguments=step is not None and step.arguments is not UNKNOWN,
                run=_run_around(parent_context),
            )
            sighting = Sighting(record=record, at_start=at_start)
            with self._lock:
                if self._sampling is None:
                    self._sampling = drop_warning(sampler_of(span)) or ""
                self._open[record.span_id] = sighting
                if len(self._open) > self._spans:
                    self._open.popitem(last=False)
                    self._forgotten += 1
        except Exception as error:  # noqa: BLE001 -- telemetry must never break the application
            self._fault(error)

    def on_end(self, span: ReadableSpan) -> None:
        """Take in a span that has ended."""
        try:
            record, dropped = record_of(span), span.dropped_attributes
            with self._lock:
                known = self._open.pop(record.span_id, None)
                at_start = AtStart() if known is None else known.at_start
                sighting = Sighting(record=record, at_start=at_start, dropped_attributes=dropped)
                self._ended.append(sighting)
                if len(self._ended) > self._spans:
                    self._ended.popleft()
                    self._forgotten += 1
        except Exception as error:  # noqa: BLE001 -- telemetry must never break the application
            self._fault(error)

    def report(self) -> Report:
        """Return what the spans show so far; those that go on are looked at as they started."""
        with self._lock:
            sightings, sampling = [*self._ended, *self._open.values()], self._sampling
            forgotten = self._forgotten
        if sampling is None:  # no span came by: the sampler may be why
            sampling = drop_warning(sampler_of(None)) or ""
        seen = msgspec.structs.replace(
            examine(sightings, self._dialects), is_live=True, sampling=sampling, forgotten=forgotten
        )
        return report_on(seen)

    def _fault(self, error: Exception) -> None:
        if not self._is_broken:
            self._is_broken = True
            _logger.error("the doctor failed on a span; the application goes on", exc_info=error)


def _run_around(context: Context | None) -> str:
    """Return the `guarded_run` around the calling code, or the run that the baggage names."""
    slot = CURRENT.get()
    if slot is not None and slot.explicit_id is not None:
        return slot.explicit_id
    return run_in_baggage(context) or ""
