"""Finds the messages of a model call on its span: under their present name, else an older one."""

from __future__ import annotations

from otel_loopguard import semconv
from otel_loopguard.dialects._events import answer_in_events, input_in_events
from otel_loopguard.dialects._indexed import indexed_messages
from otel_loopguard.dialects._values import Names
from otel_loopguard.spans import SpanRecord

_GIVEN = (semconv.GEN_AI_INPUT_MESSAGES, semconv.GEN_AI_PROMPT)
_ANSWERED = (semconv.GEN_AI_OUTPUT_MESSAGES, semconv.GEN_AI_COMPLETION)


def messages_given(record: SpanRecord) -> object:
    """Return the messages that the model was given; `None` if the span does not show them."""
    messages = _first_of(record, _GIVEN)
    if messages is None:
        messages = indexed_messages(record.attributes, semconv.GEN_AI_PROMPT)
    return input_in_events(record) if messages is None else messages


def messages_answered(record: SpanRecord) -> object:
    """Return the messages that it answered with; `None` if the span does not show them."""
    messages = _first_of(record, _ANSWERED)
    if messages is None:
        messages = indexed_messages(record.attributes, semconv.GEN_AI_COMPLETION)
    return answer_in_events(record) if messages is None else messages


def _first_of(record: SpanRecord, names: Names) -> object:
    for name in names:
        value = record.attributes.get(name)
        if value is not None:
            return value
    return None
