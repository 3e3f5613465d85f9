"""Reads what all conventions write alike about tools: those offered, and what one answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._values import content, is_array, is_mapping, parsed, text

_WRAPPERS = ("output", "data", "update", "messages", "kwargs")
"""Where a LangChain tool message stands in what LangChain or an instrumentation wraps it in."""
_MAX_LAYERS = 6
"""A command's message stands in the fourth; a structure may also contain itself."""
_JSON = msgspec.json.Decoder(object)


class _Function(msgspec.Struct, frozen=True):
    name: object = None


class Definition(msgspec.Struct, frozen=True):
    """The definition of a tool: the name stands in it or, in OpenAI's Chat API, in `function`."""

    name: object = None
    function: _Function | None = None


def offered_names(definitions: Iterable[Definition]) -> frozenset[str] | Unknown:
    """Return the names of the tools; `UNKNOWN` if one has none, for it may stand for many."""
    names = {
        text(definition.name) or text(definition.function.name if definition.function else None)
        for definition in definitions
    }
    return UNKNOWN if "" in names else frozenset(names)


def structure(value: object) -> object:
    """Return what JSON text says; `value` itself if it is no JSON object or array."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        decoded = parsed(value, _JSON)
        return value if decoded is None else decoded
    return value


def tool_answer(result: object, limit: int | None) -> tuple[object, str | None]:
    """Return what a tool answered, and the call id that stands in it (`None` if there is none).

    A tool of LangChain answers with a message that holds the call's id, so that no two answers
    would be equal. What the model gets to read is the message's content, and its status where that
    is not "success".
    """
    # Looking for the name spares decoding what cannot be such a message.
    if result is UNKNOWN:
        return result, None
    if isinstance(result, str) and "tool_call_id" not in result:
        return result, None
    message = _tool_message(structure(result), _MAX_LAYERS)
    if message is None:
        return result, None
    said = content(message["content"], limit)
    status = text(message.get("status"))
    known_failure = said is not UNKNOWN and status not in {"", "success"}
    return (
        {"content": said, "status": status} if known_failure else said,
        text(message["tool_call_id"]) or None,
    )


def _tool_message(value: object, layers: int) -> Mapping[str, object] | None:
    inner = value[0] if is_array(value) and len(value) == 1 else value
    if not is_mapping(inner) or not layers:
        return None
    if "tool_call_id" in inner and "content" in inner:
        return inner
    return next(
        (_tool_message(inner[name], layers - 1) for name in _WRAPPERS if name in inner), None
    )
