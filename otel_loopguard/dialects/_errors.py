"""Reads what went wrong in a span; all conventions write it in OpenTelemetry's way."""

from __future__ import annotations

from otel_loopguard import semconv
from otel_loopguard.dialects._values import text
from otel_loopguard.spans import SpanRecord

_SAYS_NOTHING = "_OTHER"
"""`error.type` of an error that has no class, by the convention."""


def error_of(record: SpanRecord) -> str | None:
    """Return `{type}: {message}` as far as they are known; `None` if the span did not fail.

    It failed if its status is ERROR or `error.type` is set. A recorded exception alone may have
    been handled.
    """
    kind = text(record.attributes.get(semconv.ERROR_TYPE))
    if not record.is_error and not kind:
        return None
    message = record.status_message
    for event in reversed(record.events):
        if event.name == semconv.EXCEPTION_EVENT:
            kind = text(event.attributes.get(semconv.EXCEPTION_TYPE)) or kind
            message = text(event.attributes.get(semconv.EXCEPTION_MESSAGE)) or message
            break
    if kind == _SAYS_NOTHING or message.startswith(kind):
        kind = ""
    return ": ".join(part for part in (kind, message) if part) or "error"
