"""What the runs of a conversation have used up, kept from one run to the next. Bounded."""

from __future__ import annotations

from collections import OrderedDict

from otel_loopguard import semconv
from otel_loopguard.engine.rule_sets import Carried
from otel_loopguard.spans import SpanRecord

CONVERSATIONS = 1_024
"""Conversations known at a time; past that the one that is longest unused is forgotten."""

_NAMES = (
    semconv.GEN_AI_CONVERSATION_ID,
    semconv.TRACELOOP_SESSION_ID,
    semconv.TRACELOOP_THREAD_ID,
    semconv.LANGSMITH_SESSION_ID,
    semconv.LANGSMITH_THREAD_ID,
    semconv.AI_SESSION_ID,
)


class Conversations:
    """By the id of each conversation, what its runs have used up of the limits."""

    __slots__ = ("_by_id", "evicted")

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, Carried] = OrderedDict()
        self.evicted = 0
        """Conversations that were forgotten because there were too many."""

    def carried(self, conversation: str | None) -> Carried | None:
        """Return what the earlier runs of a conversation have used up; `None` if nothing is known.

        It stays here: of two runs at a time, each begins with it.
        """
        if conversation is None or conversation not in self._by_id:
            return None
        self._by_id.move_to_end(conversation)
        return self._by_id[conversation]

    def keep(self, conversation: str | None, carried: Carried | None) -> None:
        """Note what a conversation has used up when one of its runs ends."""
        if conversation is None or carried is None:
            return
        self._by_id[conversation] = carried
        self._by_id.move_to_end(conversation)
        if len(self._by_id) > CONVERSATIONS:
            self._by_id.popitem(last=False)
            self.evicted += 1


def conversation_of(record: SpanRecord) -> str | None:
    """Return the id of the conversation that a span says it belongs to.

    `session.id` is read on the spans of OpenInference alone: elsewhere it is a visitor's.
    """
    attributes = record.attributes
    for name in _NAMES:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            return value
    if semconv.OPENINFERENCE_SPAN_KIND in attributes:
        value = attributes.get(semconv.OPENINFERENCE_SESSION_ID)
        return value if isinstance(value, str) and value else None
    return None
