"""Models in process that say what they were told to say: one that never finishes, and a script.

    model = EndlessModel("lookup", {"order": 7})
    model = ScriptedModel([("lookup", {"order": 7}), "It has been shipped."])

They are called with anything and look at none of it: a double that reacts to what it is told would
be a second implementation of the thing under test. Only the tools that are offered count, where no
call is spelled out. What is sent over the network by a real model is not tried by them: that is
what `model_server` is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from otel_loopguard.model_turns import ModelTurn, ToolCall
from otel_loopguard.testing.double import Double, ModelRefusedError
from otel_loopguard.testing.samples import sample_arguments
from otel_loopguard.testing.scripts import OfferedTool

__all__ = [
    "EndlessModel",
    "ModelRefusedError",
    "NoToolError",
    "ScriptEndedError",
    "ScriptedModel",
    "ScriptedTurn",
]

Call: TypeAlias = "ToolCall | tuple[str, Mapping[str, object]]"
"""A tool call: a `ToolCall`, or a tool's name and its arguments."""

ScriptedTurn: TypeAlias = "ModelTurn | str | Call | list[Call] | Exception"
"""What a script may hold: a whole turn; a text, which is an answer; a call, or a list of calls that
are to be made at the same time; an exception, which is raised."""

CALLS = "tool_calls"
STOP = "stop"


class ScriptEndedError(RuntimeError):
    """A scripted model was asked for more turns than it has."""


class NoToolError(RuntimeError):
    """A model is to call the first tool that it is offered, and was offered none."""


class EndlessModel(Double):
    """A model that never finishes: it asks for the same tool call again and again.

    Each call has an id of its own. A turn takes 20 output tokens, the first one 100 input tokens
    and each further one 30 more, as a history that grows.

    Args:
        tool: the name of the tool; `None` for the first one that is offered, which a framework's
            adapter knows.
        arguments: what it is called with, the same each time; `None` for values that the schema of
            the offered tool accepts, none where it is not offered.
        at_once: how many equal calls each turn asks for at the same time.
        name: what errors and frameworks call the model.

    """

    def __init__(
        self,
        tool: str | None = None,
        arguments: Mapping[str, object] | None = None,
        *,
        at_once: int = 1,
        name: str = "endless-model",
    ) -> None:
        super().__init__(name)
        if tool is not None and not isinstance(cast("object", tool), str):
            raise TypeError(f"tool={tool!r} is no name of a tool; expected one, such as 'lookup'")
        if isinstance(at_once, bool) or not isinstance(cast("object", at_once), int) or at_once < 1:
            raise ValueError(f"at_once={at_once!r} is no number of calls; expected one from 1")
        self._tool = tool
        self._arguments = arguments
        self._at_once = at_once

    def __repr__(self) -> str:
        return f"EndlessModel({self._tool!r}, name={self.name!r})"

    def _turn(self, number: int, offered: Sequence[OfferedTool]) -> ModelTurn:
        named = [each for each in offered if self._tool in (None, each.name)]
        name = named[0].name if named else self._tool
        if name is None:
            raise NoToolError(
                f"{self!r} was offered no tool in call {number}; offer one to the model, or name "
                "the one that it is to call: EndlessModel('lookup', {'order': 7})"
            )
        arguments = self._arguments
        if arguments is None:
            arguments = sample_arguments(named[0].parameters) if named else {}
        call = ToolCall(name=name, arguments=arguments)
        return _costing(number, calls=(call,) * self._at_once)


class ScriptedModel(Double):
    """A model that says these turns, one after the other, and then fails.

        ScriptedModel([
            ("lookup", {"order": 7}),                          # a call
            [("lookup", {"order": 8}), ("stock", {"item": 3})],  # two at the same time
            TimeoutError("the provider is slow"),              # raised, for a retry to try again
            "Both have been shipped.",                         # an answer, the end of the run
        ])

    A `ModelTurn` is played as it is, with an id for each call that has none; the other forms take
    tokens as those of an `EndlessModel` do. Asked once more, it raises `ScriptEndedError`: a script
    that runs dry is no answer.

    Raises `TypeError` for a turn of any other form.
    """

    def __init__(self, turns: Iterable[ScriptedTurn], *, name: str = "scripted-model") -> None:
        super().__init__(name)
        if isinstance(turns, (str, bytes)):
            raise TypeError(f"turns={turns!r} is one text; expected a list of turns: [{turns!r}]")
        self._turns = tuple(
            _turn_of(turn, number) for number, turn in enumerate(cast("Iterable[object]", turns), 1)
        )

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._turns)} turns, name={self.name!r})"

    def _turn(self, number: int, offered: Sequence[OfferedTool]) -> ModelTurn:  # noqa: ARG002 -- all is spelled out
        if number > len(self._turns):
            raise ScriptEndedError(
                f"{self!r} has no turn for call {number}: its script has {len(self._turns)}; "
                "write one turn for each model call that the run makes"
            )
        turn = self._turns[number - 1]
        if isinstance(turn, Exception):
            raise turn
        return turn


def _turn_of(turn: object, number: int) -> ModelTurn | Exception:
    if isinstance(turn, (ModelTurn, Exception)):
        return turn
    if isinstance(turn, str):
        return _costing(number, text=turn)
    asked = cast("list[object]", turn) if isinstance(turn, list) else [turn]
    calls = [_call_of(each) for each in asked]
    if not calls or None in calls:
        raise TypeError(
            f"turn {number} of the script is {turn!r}; expected a text, a call such as "
            "('lookup', {'order': 7}), a list of calls, a ModelTurn or an exception"
        )
    return _costing(number, calls=tuple(filter(None, calls)))


def _call_of(call: object) -> ToolCall | None:
    match call:
        case ToolCall():
            return call
        case (str(name), Mapping()):
            _, arguments = cast("tuple[str, Mapping[str, object]]", call)
            return ToolCall(name=name, arguments=arguments)
        case _:
            return None


def _costing(number: int, *, text: str = "", calls: tuple[ToolCall, ...] = ()) -> ModelTurn:
    return ModelTurn(
        text=text,
        calls=calls,
        finish_reason=CALLS if calls else STOP,
        input_tokens=100 + 30 * (number - 1),
        output_tokens=20,
    )
