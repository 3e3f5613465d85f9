"""What the contract's tests look for in the exceptions, spans and metrics of a run."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from otel_loopguard import RunAborted, SpanKey, abort_of
from otel_loopguard.registry.names import EVENT_VIOLATION
from tests.frameworks._workbench import Counts, Outcome, Scene

ANSWER = "The final answer is 42."
"""The last words of the script `finish3`."""

HEALTHY = Counts(requests=3, executions=2)
"""What the script `finish3` takes."""

REPEATED = Counts(requests=5, executions=5)
"""What the script `endless` takes until its fifth equal result: the sixth request never leaves."""

VIOLATIONS = [
    ("repeated_result", "warn", 3, 6),
    ("repeated_output", "warn", 3, 7),
    ("no_novelty", "warn", 3, 8),
    ("repeated_result", "abort", 5, 10),
]
"""What is found in it until then: rule, action, count and the number of the step, in order."""


def aborted(outcome: Outcome) -> RunAborted:
    """Return the `RunAborted` in what the caller got from the framework."""
    found = abort_of(outcome.error)
    assert found is not None, f"no RunAborted in {outcome.error!r}"
    return found


def key_of(span: ReadableSpan) -> SpanKey:
    """Return the identity of a span."""
    context = span.get_span_context()
    assert context is not None
    return SpanKey(context.trace_id, context.span_id)


def violations(scene: Scene) -> list[dict[str, Any]]:
    """Return the attributes of every `loopguard.violation`, with the name of its span."""
    return [
        {**(event.attributes or {}), "on": span.name}
        for span in scene.spans
        for event in span.events
        if event.name == EVENT_VIOLATION
    ]


def found(violation: dict[str, Any]) -> tuple[str, str, float, int]:
    """Return rule, action, count and step of an event, as they are in `VIOLATIONS`."""
    rule, action, count, step = (
        violation[f"loopguard.{name}"] for name in ("rule", "action", "count", "step.number")
    )
    return rule, action, count, step


def run_attributes(scene: Scene) -> list[dict[str, Any]]:
    """Return what the guard wrote on each run's span, the run's id left out."""
    return [
        {
            name.removeprefix("loopguard."): value
            for name, value in (span.attributes or {}).items()
            if name.startswith("loopguard.") and name != "loopguard.run.id"
        }
        for span in scene.named(scene.framework.run_span)
    ]


def ended_runs(scene: Scene) -> dict[tuple[str, bool], float]:
    """Return how many runs the metrics have by status and by whether they tripped."""
    return {
        (labels["loopguard.run.status"], labels["loopguard.tripped"]): count
        for labels, count in scene.points("loopguard.runs")
    }


def stops(scene: Scene) -> dict[tuple[str, str], float]:
    """Return how often the metrics say that something stopped a run, and with what result."""
    return {
        (labels["loopguard.abort.hook"], labels["loopguard.abort.result"]): count
        for labels, count in scene.points("loopguard.aborts")
    }
