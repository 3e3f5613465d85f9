"""What arrived at the OTLP receiver, sorted into traces and into the last value of each metric.

The names are written out here, as a dashboard or a query would have them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.sdk.resources import SERVICE_NAME

if TYPE_CHECKING:
    from otel_loopguard.testing.otlp_receiver import OtlpReceiver
    from otel_loopguard.testing.received import ReceivedEvent, ReceivedPoint, ReceivedSpan


class Trace(NamedTuple):
    """The spans of one trace, by the time they started."""

    spans: tuple[ReceivedSpan, ...]

    @property
    def root(self) -> ReceivedSpan:
        return next(span for span in self.spans if span.parent_id is None)

    def below(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.parent_id == parent.span_id]

    @property
    def violations(self) -> list[ReceivedEvent]:
        events = [event for span in self.spans for event in span.events]
        return [event for event in events if event.name == "loopguard.violation"]

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens of all model calls."""
        calls = [
            span.attributes
            for span in self.spans
            if span.attributes.get("gen_ai.operation.name") == "chat"
        ]
        return (
            sum(int(str(call.get("gen_ai.usage.input_tokens", 0))) for call in calls),
            sum(int(str(call.get("gen_ai.usage.output_tokens", 0))) for call in calls),
        )


class Arrivals(NamedTuple):
    """What one service sent."""

    spans: tuple[ReceivedSpan, ...]
    metrics: tuple[ReceivedPoint, ...]
    """The last point of each series."""

    def trace_of(self, agent: str) -> Trace:
        """Return the trace in which this agent ran; ends the demo where none has arrived."""
        found = {
            span.trace_id
            for span in self.spans
            if span.attributes.get("gen_ai.agent.name") == agent
        }
        if len(found) != 1:
            sys.exit(f"FAILED: expected one trace of agent {agent!r}, {len(found)} arrived")
        return Trace(tuple(span for span in self.spans if span.trace_id in found))

    def value_of(self, metric: str, **attributes: object) -> float:
        """Add the values of a counter over all series that have these attributes."""
        wanted = {f"loopguard.{name}": value for name, value in attributes.items()}
        return sum(
            point.value or 0
            for point in self.metrics
            if point.name == metric and wanted.items() <= point.attributes.items()
        )


def arrivals_of(receiver: OtlpReceiver, service: str) -> Arrivals:
    """Return what the service of this name has sent so far."""
    spans = [span for span in receiver.spans if span.resource[SERVICE_NAME] == service]
    points = [point for point in receiver.metrics if point.resource[SERVICE_NAME] == service]
    last = {(point.name, *sorted(map(str, point.attributes.items()))): point for point in points}
    return Arrivals(
        spans=tuple(sorted(spans, key=lambda span: span.started_ns)),
        metrics=tuple(point for _, point in sorted(last.items())),
    )
