"""Reads messages that are flattened into attributes, as OpenLLMetry wrote them until 2026.

`gen_ai.completion.0.tool_calls.1.name` is a name of one attribute. What comes out are messages in
the form of OpenAI's Chat API.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count, takewhile

from otel_loopguard.dialects._values import Attributes

_FIELDS = ("role", "content", "finish_reason", "tool_call_id")
_MARKS = ("role", "content", "finish_reason")
"""One of them stands on every message."""


def indexed_messages(attributes: Attributes, prefix: str) -> list[dict[str, object]] | None:
    """Return the messages below `prefix`; `None` if there are none."""
    if _first_marks(prefix).isdisjoint(attributes):
        return None
    return [
        {
            **{field: attributes.get(f"{message}.{field}") for field in _FIELDS},
            "tool_calls": list(_calls(attributes, message)) or None,
        }
        for message in _numbered(attributes, prefix, _MARKS)
    ]


@lru_cache
def _first_marks(prefix: str) -> frozenset[str]:
    return frozenset(f"{prefix}.0.{mark}" for mark in _MARKS)


def _calls(attributes: Attributes, message: str) -> Iterator[dict[str, object]]:
    for call in _numbered(attributes, f"{message}.tool_calls", ("name",)):
        function: dict[str, object] = {"name": attributes[f"{call}.name"]}
        arguments = attributes.get(f"{call}.arguments")
        if arguments is not None:
            function["arguments"] = arguments
        yield {"id": attributes.get(f"{call}.id"), "function": function}


def _numbered(attributes: Attributes, prefix: str, marks: tuple[str, ...]) -> Iterator[str]:
    """Yield `{prefix}.0`, `{prefix}.1`, ... as long as one of `marks` is there."""
    return takewhile(
        lambda item: any(f"{item}.{mark}" in attributes for mark in marks),
        (f"{prefix}.{number}" for number in count()),
    )
