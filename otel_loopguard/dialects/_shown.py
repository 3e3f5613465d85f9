"""Reads what a model was given and answered: under the present names, else the older ones."""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.dialects._events import answer_in_events, input_in_events
from otel_loopguard.dialects._flattened import Layout, flattened_answer, flattened_input
from otel_loopguard.dialects._inputs import model_input
from otel_loopguard.dialects._messages import ModelAnswer, model_answer
from otel_loopguard.dialects._values import Names
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput

_GIVEN = (semconv.GEN_AI_INPUT_MESSAGES, semconv.GEN_AI_PROMPT)
_ANSWERED = (semconv.GEN_AI_OUTPUT_MESSAGES, semconv.GEN_AI_COMPLETION)
_LAYOUT = Layout(marks=(".role", ".content"))
_FIRST_ANSWER = tuple(f"{semconv.GEN_AI_COMPLETION}.0{mark}" for mark in _LAYOUT.marks)


def answer_shown(record: SpanRecord, finish_reasons: tuple[str, ...]) -> ModelAnswer:
    """Return what the model answered, given the span's finish reasons."""
    attributes, limit = record.attributes, record.value_length_limit
    messages = _first_of(record, _ANSWERED)
    if messages is None:
        messages = answer_in_events(record)
    if messages is not None:
        return model_answer(messages, finish_reasons, limit)
    if not any(first in attributes for first in _FIRST_ANSWER):  # as at each start
        return ModelAnswer(finish_reasons=finish_reasons)
    flat = flattened_answer(attributes, semconv.GEN_AI_COMPLETION, _LAYOUT, limit)
    return msgspec.structs.replace(flat, finish_reasons=finish_reasons)


def input_shown(record: SpanRecord) -> ModelInput | None:
    """Return what is new in the messages that it was given; `None` if they are not shown."""
    attributes, limit = record.attributes, record.value_length_limit
    messages = _first_of(record, _GIVEN)
    if messages is None:
        messages = input_in_events(record)
    if messages is not None:
        return model_input(messages, limit)
    return flattened_input(attributes, semconv.GEN_AI_PROMPT, _LAYOUT, limit)


def _first_of(record: SpanRecord, names: Names) -> object:
    for name in names:
        value = record.attributes.get(name)
        if value is not None:
            return value
    return None
