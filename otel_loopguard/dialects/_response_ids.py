"""Finds what a provider calls an answer in JSON text, without reading the rest of it.

Inside of a text of the JSON the quotes would be escaped, so that nothing is found there.
"""

from __future__ import annotations

import re

from otel_loopguard.dialects._values import text

_PREVIOUS = re.compile(r'"previous_response_id": ?"([^"\\]+)"')
_OPENAI = re.compile(r'"id": ?"((?:chatcmpl-|resp_)[^"\\]+)"')
_ANTHROPIC = re.compile(r'"id": ?"(msg_[^"\\]+)"')


def response_id_in(*attributes: object) -> str:
    """Return the first id of an answer of OpenAI or Anthropic that is in one of them; else ""."""
    # In OpenAI's answers a part may have an id that looks like Anthropic's.
    return _first(_OPENAI, attributes) or _first(_ANTHROPIC, attributes)


def previous_in(*attributes: object) -> str:
    """Return the first `previous_response_id` that is in one of them; else ""."""
    return _first(_PREVIOUS, attributes)


def _first(form: re.Pattern[str], attributes: tuple[object, ...]) -> str:
    found = (form.search(text(value)) for value in attributes)
    return next((match[1] for match in found if match), "")
