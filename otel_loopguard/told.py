"""What a model request tells its model of the work that it goes on with, as far as ids show it.

Requests are read in the forms of OpenAI's Chat and Responses APIs, of Anthropic's Messages API, of
Bedrock's Converse and of Gemini. Nothing of what is said is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

_NUMBERED = re.compile(r"^\D*\d{1,4}$")

LARGEST = 16_000_000
"""Bytes of a request that are read; what is larger shows nothing."""

CALL_IDS = 128
"""Ids of one request that are looked at, the latest ones."""

PARTS = 32
"""Parts of what a person said that are looked at."""

SAMPLE = 256
"""Characters at each end of a text that are looked at."""

_MOVES_ON = frozenset({"cache_control", "cachePoint"})


class Told(NamedTuple):
    """The work that a model request goes on with."""

    call_ids: tuple[str, ...] = ()
    """The tool calls whose results it tells since a person has last spoken, the latest first."""
    opening: int = 0
    """Stands for the model, and for what the person said."""
    response_id: str = ""
    """The answer that it goes on from, where the provider keeps the conversation."""

    @property
    def last_id(self) -> str:
        """The latest of the tool calls, if its id says more than a number."""
        return next((each for each in self.call_ids if not is_one_of_many(each)), "")


def is_one_of_many(call_id: str) -> bool:
    """Say whether a call's id is one that servers give to the calls of each answer: `call_1`."""
    return _NUMBERED.match(call_id) is not None


def untold() -> Told | None:
    """Read a request that cannot be read."""
    return None


def told_by(body: object) -> Told | None:
    """Return what the body of a request shows: JSON text, or the structure; `None` if nothing."""
    read = _parsed(body)
    if read is None:
        return None
    messages = next((read[name] for name in ("messages", "input", "contents") if name in read), ())
    response_id, model = read.get("previous_response_id"), read.get("model")
    listed = _listed(messages)
    spoken: object = messages if isinstance(messages, str) else None
    call_ids: list[str] = []
    for message in reversed(listed):
        answered = tuple(_answered(message))
        if not answered and _of(message, "role") == "user":
            spoken = message
            break
        call_ids += reversed(answered)
    return Told(
        tuple(call_ids[:CALL_IDS]),
        hash((str(model), _gist(spoken))),
        response_id if isinstance(response_id, str) else "",
    )


def _parsed(body: object) -> Mapping[str, Any] | None:
    if isinstance(body, (bytes, bytearray, str)):
        if len(body) > LARGEST:
            return None
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else None


def _answered(message: object) -> Iterator[str]:
    """Yield the ids of the tool calls whose results a message holds, in order."""
    for part in (message, *_listed(_of(message, "content")), *_listed(_of(message, "parts"))):
        is_output = str(_of(part, "type")).endswith("_output")
        found = (
            _of(part, "tool_call_id"),
            _of(part, "tool_use_id"),
            _of(part, "call_id") if is_output else None,
            _of(_of(part, "toolResult"), "toolUseId"),
            _of(_of(part, "functionResponse"), "id"),
        )
        yield from (call_id for call_id in found if isinstance(call_id, str) and call_id)


def _of(value: object, name: str) -> object:
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


def _listed(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else ()


def _gist(said: object) -> object:
    """Return what stands for what a person said, at a bounded cost, and is the same next time.

    Where providers are to keep something for later moves on from turn to turn.
    """
    if isinstance(said, Mapping):
        parts = islice(cast("Mapping[str, object]", said).items(), PARTS)
        return tuple([(name, _gist(value)) for name, value in parts if name not in _MOVES_ON])
    if isinstance(said, str):
        return len(said), said[:SAMPLE], said[-SAMPLE:]
    return tuple([_gist(each) for each in _listed(said)[:PARTS]]) or repr(type(said))
