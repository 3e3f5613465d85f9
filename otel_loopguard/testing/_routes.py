"""Which API a request is for: the one that is spoken at its address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from otel_loopguard.testing.anthropic_messages import ANTHROPIC_MESSAGES
from otel_loopguard.testing.gemini import GEMINI
from otel_loopguard.testing.http_exchange import path_pattern
from otel_loopguard.testing.openai_chat import OPENAI_CHAT
from otel_loopguard.testing.openai_responses import OPENAI_RESPONSES

if TYPE_CHECKING:
    from otel_loopguard.testing.http_exchange import HttpRequest
    from otel_loopguard.testing.wire import WireFormat

FORMATS: Sequence[WireFormat] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC_MESSAGES, GEMINI)
"""Every API that the server speaks."""

_PATHS = [(path, path_pattern(path), each) for each in FORMATS for path in each.paths]
_PLAIN_PATHS = {path: each for path, _, each in _PATHS if "{" not in path}


def route(request: HttpRequest) -> tuple[WireFormat | None, Mapping[str, str]]:
    """Return the format that is spoken at the request's address, and what the address says."""
    wire_format = _PLAIN_PATHS.get(request.path)
    if wire_format is not None:
        return wire_format, request.query
    for _, pattern, each in _PATHS:
        if found := pattern.fullmatch(request.path):
            return each, {**request.query, **found.groupdict()}
    return None, {}


def wrong_path(request: HttpRequest) -> str:
    """Say to which paths the request could have gone."""
    paths = ", ".join(repr(path) for path, _, _ in _PATHS)
    return (
        f"the scripted model serves nothing at {request.method} {request.path!r}; expected "
        f"POST to one of {paths}"
    )
