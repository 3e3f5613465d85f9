"""What a script is made of: the tools that it sees, and the turns that it plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]
"""Why the model stopped, in OpenAI's words; each wire format writes its own for it."""

MAX_DELAY_S = 3600.0
_FIRST_ERROR, _LAST_ERROR = 400, 599


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the caller offered to the model, with the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, object] = {}


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a script asks for; the wire format gives it an id."""

    name: str
    arguments: Mapping[str, object] = {}
    text: str | None = None
    """The arguments as they stand where an API carries them as text and they are no JSON; where
    it carries a value, `arguments` do."""


class ScriptedError(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP error that is played in place of an answer, with the body of the API's provider."""

    status: int
    """From 400 to 599."""
    message: str = "an error that the script plays"

    def __post_init__(self) -> None:
        """Raise `ValueError` for a status that is no error's."""
        if not _FIRST_ERROR <= self.status <= _LAST_ERROR:
            raise ValueError(
                f"status {self.status!r} is no error; expected {_FIRST_ERROR} to {_LAST_ERROR}"
            )


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one model call; `input_tokens` includes the cached ones, none is reasoning."""

    input_tokens: int
    cached_tokens: int = 0
    output_tokens: int

    def __post_init__(self) -> None:
        """Raise `ValueError` for tokens that cannot be."""
        if not (0 <= self.cached_tokens <= self.input_tokens and self.output_tokens >= 0):
            raise ValueError(
                f"input_tokens={self.input_tokens!r}, cached_tokens={self.cached_tokens!r} and "
                f"output_tokens={self.output_tokens!r} cannot be; expected none below 0, and no "
                "more cached tokens than input tokens"
            )

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model: a text, calls that are to be made at the same time, both or neither.

    Or an error, after which nothing was answered.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish_reason: FinishReason | None = None
    """`None` is what the turn suggests: `tool_calls` where it has calls, else `stop`."""
    usage: Usage | None = None
    """`None` is a usage that grows with the history."""
    delay_s: float = 0.0
    """How many seconds the answer takes."""
    error: ScriptedError | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for a turn that cannot be played."""
        if not 0 <= self.delay_s <= MAX_DELAY_S:
            raise ValueError(
                f"delay_s={self.delay_s!r} is no delay; expected 0 to {MAX_DELAY_S:g} seconds"
            )
        if self.error and (self.text or self.calls or self.finish_reason or self.usage):
            raise ValueError(
                "a turn with an error answers nothing; expected no 'text', 'calls', "
                "'finish_reason' or 'usage' beside 'error'"
            )

    @property
    def ending(self) -> FinishReason:
        """Why the model stopped."""
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


Play: TypeAlias = Callable[[Sequence[OfferedTool], int], Turn]
"""From the offered tools and a count to the next turn; the same turn for the same, always."""


class NoTurnError(LookupError):
    """A script has no turn for the request; the text says how many it has."""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What a scripted model says next, as a pure function with a name.

    It is called with the tools that were offered and a count, and knows nothing else.
    """

    name: str
    play: Play
    counts: Literal["results", "requests"] = "results"
    """What the count is: the tool results in the request, so that several runs can be played at
    once; or the requests that the script has answered before."""

    def __call__(self, tools: Sequence[OfferedTool], count: int) -> Turn:
        """Return the next turn; raises `NoTurnError` where there is none."""
        return self.play(tools, count)
