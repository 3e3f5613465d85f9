"""Finds what a provider calls an answer in JSON text, without reading the rest of it.

Inside of a text of the JSON the quotes would be escaped, so that nothing is found there.
"""

from __future__ import annotations

from collections.abc import Iterator

from otel_loopguard.dialects._values import text

_OPENAI = ("chatcmpl-", "resp_")
_ANTHROPIC = ("msg_",)
_ID = ('"id":"', '"id": "')
_SEARCHED = 4_096


def response_id_in(*attributes: object) -> str:
    """Return the first id of an answer of OpenAI or Anthropic that is in one of them; else ""."""
    # A provider's own answer begins with it; LangChain's has it behind a short text or the calls.
    texts = [text(value)[:_SEARCHED] for value in attributes]
    # In OpenAI's answers a part may have an id that looks like Anthropic's, so that these are last.
    found = (_beginning(start, value) for start in (*_OPENAI, *_ANTHROPIC) for value in texts)
    return next(filter(None, found), "")


def previous_in(*attributes: object) -> str:
    """Return the first `previous_response_id` that is in one of them; else ""."""
    found = (_named("previous_response_id", text(value)) for value in attributes)
    return next(filter(None, found), "")


def _beginning(start: str, within: str) -> str:
    """Return the first `id` that begins with `start`."""
    for place in _places(start, within):
        if within[max(0, place - 7) : place].endswith(_ID):
            return _text_at(place - 1, within)
    return ""


def _named(name: str, within: str) -> str:
    """Return the first text by that name."""
    for place in _places(f'"{name}":', within):
        value = place + len(name) + 3
        quote = value + (within[value : value + 1] == " ")
        if within[quote : quote + 1] == '"':
            return _text_at(quote, within)
    return ""


def _places(part: str, within: str) -> Iterator[int]:
    # Finding a text is many times faster than a regular expression.
    place = within.find(part)
    while place >= 0:
        yield place
        place = within.find(part, place + 1)


def _text_at(quote: int, within: str) -> str:
    """Return the text that begins at a quote; "" if it does not end."""
    end = within.find('"', quote + 1)
    return within[quote + 1 : end] if end >= 0 else ""
