"""What an agent did, as plain data.

A step is one thing an agent did: a model call, a tool call, a sub-agent, or anything the
application counts as one. Detectors, policies and telemetry speak of steps only; where a step came
from (a live span, a recorded file, a hand-written loop) is forgotten here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown

__all__ = [
    "UNKNOWN",
    "ModelInput",
    "SpanKey",
    "Step",
    "StepKind",
    "ToolAnswer",
    "ToolCall",
]

StepKind: TypeAlias = Literal["llm", "tool", "agent", "custom"]
"""A model call, a tool call, a sub-agent, or what the application counts as a step."""


class SpanKey(NamedTuple):
    """Which span a step was read from."""

    trace_id: int
    span_id: int


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a model asked for."""

    name: str
    arguments: object = UNKNOWN
    call_id: str | None = None


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model was told that a tool call had come to."""

    call_id: str
    result: object = UNKNOWN


class ModelInput(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in the messages that a model call was given: those after its own last answer."""

    answers: tuple[ToolAnswer, ...] = ()
    spoken: bool = False
    """A person said something."""
    previous_response_id: str = ""
    """The answer that this call goes on from, where the provider keeps the conversation."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the agent did.

    Absent, truncated and empty are three different things: `UNKNOWN` (absent, cut or hidden) never
    equals anything, `{}` equals `{}`. Times are seconds on one time line per run, tokens are
    counts, `cost_usd` is US dollars. `input_tokens` includes cached tokens.
    """

    kind: StepKind
    name: str = ""
    arguments: object = UNKNOWN
    result: object = UNKNOWN
    error: str | None = None
    """What went wrong (type and message, as far as known); `None` if nothing did."""
    call_id: str | None = None
    found_by: SpanKey | None = None
    """What it is found again by while it is open, where that is no span of its own."""
    agent: str = ""
    agent_id: str | None = None
    """Which invocation of the agent."""
    agent_parent_id: str | None = None
    finish_reasons: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    tool_calls: tuple[ToolCall, ...] | Unknown = UNKNOWN
    """The calls that a model turn asked for; `()` is known to be none."""
    offered_tools: frozenset[str] | Unknown = UNKNOWN
    output: str | Unknown = UNKNOWN
    """The text of a model turn."""
    response_id: str = ""
    """What the provider calls the answer: two spans that show one answer show it alike."""
    batch: str | None = None
    """Steps with the same batch were asked for by one model turn."""
    approved: bool = False
    """A person approved this call: it is exempt from the repetition rules."""
    spoken: bool | Unknown = False
    """For a model call: a person has said something since the last one; `UNKNOWN` until it ends."""
    spanless: bool = False
    """For a tool call: it is known from the model's messages alone. It carries the number of the
    turn that asked for it, and is found again by its call id, not by its span."""
    inner: bool = False
    """It is a step of a run inside the one that is told: nothing but the totals, and silence, is
    held against it."""
    delegated: bool = False
    """For a tool call: it runs an agent, whose own calls count, and is no execution of a tool."""
    provider: str = ""
    model: str = ""
    started_s: float | None = None
    ended_s: float | None = None
    span: SpanKey | None = None

    @property
    def call_ids(self) -> tuple[str, ...]:
        """The ids of the tool call that it is, or of those that it asks for, as far as known."""
        asked = () if self.tool_calls is UNKNOWN else self.tool_calls
        return tuple(i for i in (self.call_id, *(call.call_id for call in asked)) if i)
