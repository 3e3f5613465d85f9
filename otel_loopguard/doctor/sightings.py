"""Spans as the doctor gets them, and what it counts on them: plain data."""

from __future__ import annotations

import msgspec

from otel_loopguard.spans import SpanRecord

DEFAULT_ATTRIBUTE_COUNT = 128
"""Attributes that a span may have, unless the SDK is told otherwise."""


class AtStart(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of a span when it started: live spans only."""

    dialect: str = ""
    """The dialect that recognised it then; "" if none did."""
    arguments: bool = False
    """The arguments of its tool call were known."""
    run: str = ""
    """The `guarded_run` that it started in."""


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A span, at its end if that was seen."""

    record: SpanRecord
    at_start: AtStart | None = None
    dropped_attributes: int | None = None
    """Attributes that the span has lost to a limit; `None` where that is not known."""

    @property
    def is_full(self) -> bool:
        """Whether a limit has cost it attributes, as far as that can be told."""
        if self.dropped_attributes is not None:
            return self.dropped_attributes > 0
        return len(self.record.attributes) == DEFAULT_ATTRIBUTE_COUNT


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """How spans of an instrumentation were recognised."""

    dialect: str
    by: str
    """`attributes`, or `name` where these do not tell; `scope and` either where that is needed."""
    spans: int
    at_start: int | None
    """How many of them were already recognised when they started; `None` in a recording."""


class ToolsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What tool calls show; each number counts calls."""

    calls: int = 0
    arguments: int = 0
    results: int = 0
    errors: int = 0
    call_ids: int = 0
    arguments_at_start: int = 0
    """In a recording nothing is known of starts."""


class ModelsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What model calls show; each number counts calls."""

    calls: int = 0
    errors: int = 0
    usage: int = 0
    output: int = 0
    requested_calls: int = 0
    """The tool calls that the answer asks for are known, if only that there are none."""
    asking: int = 0
    """Those that say, by a finish reason or by calls, that they ask for tools."""
    input: int = 0
    finish_reasons: int = 0
    response_ids: int = 0


class AgentsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What agents' spans show."""

    spans: int = 0
    named: int = 0


class ScopeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What one instrumentation shows."""

    scope: str
    spans: int
    models: ModelsSeen
    tools: ToolsSeen
    agents: AgentsSeen
    requested: ToolsSeen
    """Tool calls without a span, known from the messages of its model calls."""
    parts: int
    """Spans that show a step which another one shows as well: it counts once."""
    other_steps: int
    others: int
    """Spans that are nobody's step."""
    recognised: tuple[Recognised, ...]
    conversations: int
    """Spans that say which conversation they belong to."""
    redacted: int
    """Spans with a value that was hidden."""
    cut: int
    """Values that a limit has cut."""
    cut_at: int
    """The length at which it did; 0 if nothing was cut."""
    full: int
    """Spans that have lost attributes to a limit."""


class RunsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What holds the runs together."""

    agent: int = 0
    """Opened by the span of an agent."""
    top_span: int = 0
    """Opened by the topmost span around their steps."""
    unseen_top_span: int = 0
    """The same, but that span did not arrive: nothing tells when the run is over."""
    ids: int = 0
    """Held together by the ids of conversations, answers or calls; no span ends them."""
    guarded_run: int = 0
    """Put into a block by the application."""
    single_calls: int = 0
    """A model or tool call with nothing around it, that is a run of its own."""


class SeenTwice(msgspec.Struct, frozen=True, kw_only=True):
    """Model calls that two instrumentations show; each counts once."""

    counted: str
    also: str
    calls: int


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the spans show."""

    spans: int
    is_live: bool
    scopes: tuple[ScopeSeen, ...]
    runs: RunsSeen
    seen_twice: tuple[SeenTwice, ...]
    sampling: str = ""
    """What is said of the sampler; live only."""
    forgotten: int = 0
    """Spans past the number that is kept; live only."""
