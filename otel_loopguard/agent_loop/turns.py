"""A model's turn, as the loop and its guard take it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import cast

import msgspec
from msgspec.structs import asdict, replace

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.steps import Step, ToolCall

_UNSAID = ("text", "calls", "finish_reason")
"""What is `None` in the answers of many clients where there is none of it."""


def turn_in(value: object) -> ModelTurn:
    """Return what a model has answered, with nothing in it that is not of its declared type.

    Raises:
        TypeError: if it is no turn, or asks for what is no call.
        ValueError: if something in it is of another type, or took less than no tokens: nothing
            would count any more.

    """
    if not isinstance(value, ModelTurn):
        message = f"the model answered with a {type(value).__qualname__}; expected a ModelTurn"
        raise TypeError(message)
    given = {n: each for n, each in asdict(value).items() if each is not None or n not in _UNSAID}
    calls = [_as_table(call) for call in cast("Iterable[object]", given.get("calls", ()))]
    # No struct looks at what it is made of: what a model's code has put there may be anything.
    try:
        checked = msgspec.convert({**given, "calls": calls}, ModelTurn)
    except msgspec.ValidationError as error:  # no `ValueError` in older versions of msgspec
        raise ValueError(str(error)) from None
    if checked.input_tokens < 0 or checked.output_tokens < 0:
        message = f"the model's tokens are {checked.input_tokens} and {checked.output_tokens}"
        raise ValueError(f"{message}; expected no negative number")
    return replace(value, **asdict(checked))


def _as_table(call: object) -> dict[str, object]:
    if not isinstance(call, ToolCall):
        raise TypeError(f"the model asks for a {type(call).__qualname__}; expected a ToolCall")
    return asdict(call)


def reason_of(turn: ModelTurn) -> str:
    """Return why the model stopped; where nobody says, what the turn looks like."""
    return turn.finish_reason or ("tool_calls" if turn.calls else "stop")


def step_with(step: Step, turn: ModelTurn) -> Step:
    """Return a model's step with what came out of it."""
    return replace(
        step,
        finish_reasons=(reason_of(turn),),
        input_tokens=turn.input_tokens,
        output_tokens=turn.output_tokens,
        tool_calls=turn.calls,
        output=turn.text,
    )


def identified(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return the calls, each with an id and with arguments: those it came with, else made up."""
    given = {call.call_id for call in calls}
    names = (f"call_{number}" for number in itertools.count(1))
    free = (name for name in names if name not in given)
    return tuple(
        replace(
            call,
            call_id=call.call_id or next(free),
            arguments={} if call.arguments is UNKNOWN else call.arguments,
        )
        for call in calls
    )
