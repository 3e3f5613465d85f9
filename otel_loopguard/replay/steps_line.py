"""The line of a steps file, as far as it is read, for the decoder."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

Label: TypeAlias = str | int | None
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None
"""Seconds or dollars: not negative, not infinite."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | None


class Call(msgspec.Struct, gc=False):
    """A tool call that a model turn asked for."""

    name: str
    arguments: object = None
    call_id: Label = None
    id: Label = None


class Entry(msgspec.Struct, gc=False):
    """A step, or a user turn."""

    type: Literal["tool", "llm", "agent", "custom", "user"]
    name: str | None = None
    arguments: object = None
    args_sha: str | None = None
    result: object = None
    result_sha: str | None = None
    result_len: object = None
    error: bool | str | None = None
    finish_reason: str | None = None
    input_tokens: Count = None
    output_tokens: Count = None
    cache_read_tokens: Count = None
    cost_usd: Amount = None
    provider: str | None = None
    model: object = None
    tool_calls: list[Call] | None = None
    agent: Label = None
    parent: Label = None
    run: Label = None
    call_id: Label = None
    batch: Label = None
    contains: list[Label] | str | None = None
    approved_by_user: bool | None = None
    dt_s: Amount = None
    gap_s: Amount = None
    advance_s: Amount = None
    ended: bool | None = None


class Line(msgspec.Struct, gc=False):
    """A run."""

    steps: list[Entry]
    run_id: Label = None
    id: Label = None
    policy: dict[str, object] | None = None
    success: object = None
    label: object = None
    source: object = None
    agent: object = None
    model: object = None
