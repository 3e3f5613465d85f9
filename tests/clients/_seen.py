"""What a client shows of a play of the scripted model, in one form for all clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

NAMES = ("search", "lookup")
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}
"""Of the arguments of each tool that is offered; `javascript/tools.mjs` offers the same."""
DESCRIPTION = "Looks something up."
QUESTION = "Go."
RESULT = "ok"


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call."""

    id: str
    name: str
    arguments: object
    """A text where the client shows the text, else the value."""
    failure: str | None = None
    """The type of error by which the client says that the call cannot be made."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    text: str
    calls: tuple[Call, ...]
    finish: str | None
    tokens: tuple[int, int, int] | None
    """Input, cached among them, output; `None` where the client shows none."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What the client raised."""

    type: str
    own: bool
    """Whether it is of the client's own errors, rather than its parser's or the language's."""
    status: int | None
    """The HTTP status that it shows."""
    message: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One play, as a client saw it."""

    model: str
    stream: bool
    turns: tuple[Turn, ...]
    failure: Failure | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All plays of one client."""

    plays: tuple[Seen, ...]
    requests: Mapping[tuple[str, bool], int]
    """How many came in at the server, by script and whether they streamed."""
    tool_results: int
    """How many different ones came in at the server."""
    versions: Mapping[str, str]

    def of(self, model: str, *, stream: bool) -> Seen:
        """Return the play of this script."""
        (found,) = (each for each in self.plays if (each.model, each.stream) == (model, stream))
        return found


def joined(texts: Iterable[str | None]) -> str:
    """Put parts of a text together, of which some are absent."""
    return "".join(text or "" for text in texts)
