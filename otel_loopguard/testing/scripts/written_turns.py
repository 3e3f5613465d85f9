"""One turn of a script file: what may be said in it, and which turn that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from otel_loopguard.options.toml_lines import Keys
from otel_loopguard.testing.scripts.turns import (
    FinishReason,
    ScriptedCall,
    ScriptedError,
    Turn,
    Usage,
)

_FINISH_REASONS: Mapping[str, FinishReason] = MappingProxyType(
    {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
        "content_filter": "content_filter",
        "end_turn": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "max_output_tokens": "length",
        "refusal": "content_filter",
    }
)
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, object] | str = {}


class _Usage(msgspec.Struct, forbid_unknown_fields=True):
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


class _Error(msgspec.Struct, forbid_unknown_fields=True):
    status: int
    message: str | None = None


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    calls: list[_Call] = []
    finish_reason: str | None = None
    usage: _Usage | None = None
    delay_s: float = 0.0
    error: _Error | None = None


class TurnError(ValueError):
    """What is wrong with a turn, and where in it."""

    def __init__(self, message: str, keys: Keys = ()) -> None:
        super().__init__(message)
        self.keys = keys


def turn_said(said: object) -> Turn:
    """Return the turn that is said; raises `TurnError`."""
    try:
        turn = msgspec.convert(said, _Turn)
    except msgspec.ValidationError as error:
        raise TurnError(str(error), _keys(str(error))) from None
    reason = turn.finish_reason
    if reason is not None and reason not in _FINISH_REASONS:
        known = ", ".join(repr(each) for each in _FINISH_REASONS)
        raise TurnError(
            f"finish_reason: expected one of {known}, got {reason!r}", ("finish_reason",)
        )
    try:
        return Turn(
            text=turn.text,
            calls=tuple(_call(each) for each in turn.calls),
            finish_reason=None if reason is None else _FINISH_REASONS[reason],
            usage=None if turn.usage is None else _usage(turn.usage),
            delay_s=turn.delay_s,
            error=None if turn.error is None else _error(turn.error),
        )
    except ValueError as error:
        raise TurnError(str(error)) from None


def _call(call: _Call) -> ScriptedCall:
    if isinstance(call.arguments, str):
        return ScriptedCall(name=call.name, arguments=_object(call.arguments), text=call.arguments)
    return ScriptedCall(name=call.name, arguments=call.arguments)


def _object(text: str) -> dict[str, object]:
    """Return what the text says where it is a JSON object, else an empty one."""
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _usage(usage: _Usage) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )


def _error(error: _Error) -> ScriptedError:
    if error.message is None:
        return ScriptedError(status=error.status)
    return ScriptedError(status=error.status, message=error.message)


def _keys(message: str) -> Keys:
    """Return the place that the message of a conversion names."""
    found = _PLACE.search(message)
    parts = _PART.findall(found["path"]) if found else []
    return tuple(name or int(place) for name, place in parts)
