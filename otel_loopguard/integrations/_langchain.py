"""What the guard says, in LangChain's words: for what is wrapped there, and for the middleware."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphDrained
from langgraph.types import Command

from otel_loopguard.abort import RunAborted
from otel_loopguard.abort.aborted import Refused
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration, reason


class LangChainRunAborted(RunAborted, GraphDrained):
    """The loop guard stopped the run: it has ended early, as LangGraph's drained runs do.

    Nothing tries it again or takes it for a failure of a node or a tool. What was done is in the
    graph's checkpoint; without one, `messages` go on the history.
    """

    def __init__(
        self, report: RunReport, run_id: str = "", messages: Sequence[BaseMessage] = ()
    ) -> None:
        Exception.__init__(self, report, run_id, messages)
        self.report = report
        self.run_id = run_id
        self.messages = list(messages)
        """What the model would have been asked with; each tool call in it has a result."""
        self.reason = str(self)


def ask(integration: Integration, messages: Sequence[BaseMessage]) -> None:
    """Raise what a model request is refused with, if it is."""
    integration.ask(partial(LangChainRunAborted, messages=messages))


def with_hint(integration: Integration, messages: list[Any]) -> list[Any]:
    """Return the messages of a request, with the hint at their end if the model is to have one."""
    hint = integration.hint()
    return messages if hint is None else [*messages, HumanMessage(hint)]


class Answer:
    """What a tool call is answered with: a message, an update of the graph's state, or several."""

    __slots__ = ("given",)

    def __init__(self) -> None:
        self.given: Any = None
        """`None` until there is one."""


@contextmanager
def answering(integration: Integration, call: Mapping[str, Any]) -> Generator[Answer]:
    """Give an answer in the place of a refused call; else it is given in the block."""
    answer = Answer()
    with integration.calling(call["name"], call["args"], call["id"]) as calling:
        if calling.refusal is not None:
            answer.given = _instead(calling.refusal, call)
        try:
            yield answer
        except LangChainRunAborted as aborted:  # of an agent in the tool
            answer.given = _instead(aborted, call)
        message = _of(call["id"], answer.given)
        if message is not None and message.status == "error":
            calling.end(error=str(message.content))
        elif message is not None:
            calling.result = message.content


def _instead(refusal: Refused, call: Mapping[str, Any]) -> ToolMessage:
    return ToolMessage(reason(refusal), name=call["name"], tool_call_id=call["id"], status="error")


def _of(call_id: str, answer: Any) -> ToolMessage | None:
    """Return the result of a call; an update of the state may hold others, or all that was said."""
    if isinstance(answer, Command):
        update = cast("object", answer.update)
        said = cast("dict[str, object]", update) if isinstance(update, dict) else {}
        return _of(call_id, said.get("messages"))
    if isinstance(answer, list):
        found = (_of(call_id, each) for each in cast("list[object]", answer))
        return next(filter(None, found), None)
    is_it = isinstance(answer, ToolMessage) and answer.tool_call_id == call_id
    return answer if is_it else None
