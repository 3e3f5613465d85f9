"""The calls of one turn: which of them wait to be made, and what each has come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from otel_loopguard.agent_loop.messages import Message
from otel_loopguard.agent_loop.tools import Tool
from otel_loopguard.steps import ToolCall

_NOT_CALLED = "not called: the run was stopped before"


class Calls:
    """The calls of one turn, by their ids. Each has an answer at any time: none is left open."""

    __slots__ = ("_answers", "_calls", "_retried", "returned", "waiting")

    def __init__(self, calls: tuple[ToolCall, ...] = ()) -> None:
        self._calls = {call.call_id or "": call for call in calls}
        self._answers = {each: _failure(each, _NOT_CALLED) for each in self._calls}
        self._retried = set[str]()
        self.waiting = [*self._calls]
        """The ids of those that are still to be made."""
        self.returned: dict[str, object] = {}
        """What those returned that came back in time."""

    def __getitem__(self, call_id: str) -> ToolCall:
        """Return the call with this id."""
        return self._calls[call_id]

    def succeed(self, call_id: str, value: object, text: str) -> None:
        """Take in what a call has returned."""
        self.returned[call_id] = value
        self._answers[call_id] = Message(role="tool", call_id=call_id, text=text)

    def fail(self, call_id: str, text: str) -> None:
        """Take in why a call has come to nothing."""
        self._answers[call_id] = _failure(call_id, text)

    def retry(self, call_id: str) -> None:
        """Let a call wait once more, behind all others; not a second time."""
        if call_id not in self._retried:
            self._retried.add(call_id)
            self.waiting.append(call_id)

    def finished(self, tools: Mapping[str, Tool]) -> Iterator[str]:
        """Yield the ids of the calls that end the run."""
        returned = (each for each in self._calls if each in self.returned)
        return (each for each in returned if tools[self[each].name].finish)

    def close(self) -> tuple[Message, ...]:
        """Return the answers, in the order of the calls, and have none any more."""
        answers, self._answers = tuple(self._answers.values()), {}
        return answers


def _failure(call_id: str, text: str) -> Message:
    return Message(role="tool", call_id=call_id, text=text, failed=True)
