"""The span of a double's model call, where no other shows it.

A guard counts model calls by their spans, and by the requests that pass its model gate. A double
makes no request, and some frameworks leave the span to the model's client, which a double replaces
as well. So it writes what an instrumented client writes, without any content.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, TracerProvider

from otel_loopguard import semconv
from otel_loopguard.model_turns import ModelTurn

_CHAT = "chat"
_LLM = "LLM"
_SCOPE = "otel_loopguard.testing"


@contextmanager
def client_span(model: str, tracer_provider: TracerProvider | None) -> Generator[Span]:
    """Open a span for a call of this model, unless the current span is one already."""
    if _is_model_call(trace.get_current_span()):
        yield trace.INVALID_SPAN
        return
    tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
    with tracer.start_as_current_span(
        f"{_CHAT} {model}",
        kind=SpanKind.CLIENT,
        attributes={
            semconv.GEN_AI_OPERATION_NAME: _CHAT,
            semconv.GEN_AI_PROVIDER_NAME: "loopguard",
            semconv.GEN_AI_REQUEST_MODEL: model,
        },
    ) as span:
        yield span


def _is_model_call(span: Span) -> bool:
    known: Mapping[str, object] = getattr(span, "attributes", None) or {}
    return (
        known.get(semconv.GEN_AI_OPERATION_NAME) == _CHAT
        or known.get(semconv.OPENINFERENCE_SPAN_KIND) == _LLM
    )


def note_turn(span: Span, turn: ModelTurn) -> None:
    """Write what the call came to."""
    span.set_attribute(semconv.GEN_AI_USAGE_INPUT_TOKENS, turn.input_tokens)
    span.set_attribute(semconv.GEN_AI_USAGE_OUTPUT_TOKENS, turn.output_tokens)
    if turn.finish_reason:
        span.set_attribute(semconv.GEN_AI_RESPONSE_FINISH_REASONS, [turn.finish_reason])
