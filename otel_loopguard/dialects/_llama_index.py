"""Reads the answers of LlamaIndex's tools and models as LlamaIndex holds them, as JSON."""

from __future__ import annotations

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.dialects._values import content, joined, parsed, text
from otel_loopguard.steps import ToolCall


class _Block(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an answer: text, or a tool call of a model."""

    text: object = None
    block_type: object = None
    tool_name: object = None
    tool_kwargs: object = None
    tool_call_id: object = None


class _Output(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, with the arguments repeated beside it; in a workflow inside of `tool_output`."""

    blocks: list[_Block] | None = None
    raw_output: object = None
    is_error: object = False
    tool_id: object = None
    tool_output: _Output | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of a tool call."""

    result: object = UNKNOWN
    error: str | None = None
    call_id: str | None = None


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    blocks: list[_Block]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    message: _Message


_ANSWER = msgspec.json.Decoder(_Answer)
_OUTPUT = msgspec.json.Decoder(_Output)


def outcome(output: object, limit: int | None) -> Outcome:
    """Return what `output` tells; a result that is written in another way is returned as it is."""
    read = None if output is UNKNOWN else parsed(output, _OUTPUT)
    answer = read.tool_output or read if read is not None else None
    if read is None or answer is None or answer.blocks is None:
        return Outcome(result=output)
    whole = joined([content(block.text, limit) for block in answer.blocks])
    said = content(answer.raw_output, limit) if whole is UNKNOWN else whole
    return Outcome(
        result=said,
        error=(text(said) or "error") if answer.is_error is True else None,
        call_id=text(read.tool_id) or None,
    )


def requests(
    answer: object, limit: int | None
) -> tuple[tuple[ToolCall, ...] | Unknown, str | Unknown]:
    """Return the tool calls that a model's `answer` asks for, and its text."""
    read = None if answer is UNKNOWN else parsed(answer, _ANSWER)
    if read is None:
        return UNKNOWN, UNKNOWN
    calls = [block for block in read.message.blocks if block.block_type == "tool_call"]
    said = [block for block in read.message.blocks if block.block_type == "text"]
    return (
        tuple(
            ToolCall(
                name=text(block.tool_name),
                arguments=content(block.tool_kwargs, limit),
                call_id=text(block.tool_call_id) or None,
            )
            for block in calls
        ),
        joined([content(block.text, limit) for block in said]),
    )
