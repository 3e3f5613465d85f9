"""Reads messages that stand in span events, as the GenAI conventions had it before 1.37.

One event is one message, its body as JSON text in `gen_ai.event.content` or spread over the event's
attributes; before 1.28 one event held them all; Strands puts them into an event under the names of
the attributes. What comes out is what `_messages` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from otel_loopguard import semconv
from otel_loopguard.dialects._values import is_mapping, parsed, text
from otel_loopguard.spans import SpanEventRecord, SpanRecord

_ROLES = {
    semconv.SYSTEM_MESSAGE_EVENT: "system",
    semconv.USER_MESSAGE_EVENT: "user",
    semconv.ASSISTANT_MESSAGE_EVENT: "assistant",
    semconv.TOOL_MESSAGE_EVENT: "tool",
}
_WHOLE_ANSWERS = {
    semconv.DETAILS_EVENT: semconv.GEN_AI_OUTPUT_MESSAGES,
    semconv.COMPLETION_EVENT: semconv.GEN_AI_COMPLETION,
}
_WHOLE_CONVERSATIONS = {
    semconv.DETAILS_EVENT: semconv.GEN_AI_INPUT_MESSAGES,
    semconv.PROMPT_EVENT: semconv.GEN_AI_PROMPT,
}
_OBJECT = msgspec.json.Decoder(dict[str, object])


def answer_in_events(record: SpanRecord) -> object:
    """Return the messages that the model answered with; `None` if no event shows them."""
    if not record.events:
        return None
    whole = _whole(record, _WHOLE_ANSWERS)
    return list(_choices(record)) or None if whole is None else whole


def input_in_events(record: SpanRecord) -> object:
    """Return the messages that the model was given; `None` if no event shows them."""
    if not record.events:
        return None
    whole = _whole(record, _WHOLE_CONVERSATIONS)
    return list(_given(record)) or None if whole is None else whole


def _whole(record: SpanRecord, names: Mapping[str, str]) -> object:
    for event in record.events:
        name = names.get(event.name)
        if name is not None and name in event.attributes:
            return event.attributes[name]
    return None


def _choices(record: SpanRecord) -> Iterator[Mapping[str, object]]:
    for event in record.events:
        if event.name == semconv.CHOICE_EVENT:
            body = _body(event)
            shown = body.get("message")
            said = {"content": shown} if isinstance(shown, str) else body
            yield {"finish_reason": body.get("finish_reason"), **(_structure(shown) or said)}


def _given(record: SpanRecord) -> Iterator[Mapping[str, object]]:
    for event in record.events:
        role = _ROLES.get(event.name)
        if role is not None:
            yield {"role": role, **_body(event)}


def _body(event: SpanEventRecord) -> Mapping[str, object]:
    body = _structure(event.attributes.get(semconv.EVENT_CONTENT))
    return event.attributes if body is None else body


def _structure(value: object) -> Mapping[str, object] | None:
    """Return a JSON object, also where it is JSON text."""
    return value if is_mapping(value) else parsed(text(value), _OBJECT)
