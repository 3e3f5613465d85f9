"""Tool calls that a model asked for, until a span shows them, or their answers do.

Plain loops around a provider's SDK, and some frameworks, write no span for a tool. The call is then
known from the model's answer: it has happened when the input of a later model call of that agent
answers it. Where inputs are not shown, it has when the agent asks its model again, unless tools of
this run have spans. Bounded.
"""

from __future__ import annotations

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import ModelInput, Step, ToolCall
from otel_loopguard.tool_names import same_tool

WAITING = 128
"""Calls of one run that wait to be seen; past that the oldest is forgotten."""


class RequestedCalls:
    """The calls that the model turns of one run have asked for and that no span has shown."""

    __slots__ = ("_called", "_early", "_waiting", "have_spans")

    def __init__(self) -> None:
        self._waiting: list[tuple[Node, ToolCall]] = []
        self._early: list[tuple[Node, Step]] = []
        """Calls whose spans began while the turn that asks for them was still being told."""
        self._called = 0
        """Calls that have turned out to have been made without a span."""
        self.have_spans = False
        """A span has shown a tool call of this run."""

    def __bool__(self) -> bool:
        """Say whether any call waits."""
        return bool(self._waiting)

    def ask(self, node: Node, step: Step) -> None:
        """Take note of what a model turn has asked for."""
        if step.tool_calls is UNKNOWN or not step.tool_calls:
            return
        self._waiting += ((node, call) for call in step.tool_calls)
        del self._waiting[:-WAITING]
        early, self._early = self._early, []
        for shower, shown in early:
            self.show(shower, shown)

    def take_over(self, other: RequestedCalls, call_ids: tuple[str, ...]) -> None:
        """Wait for the calls with these ids that another run has waited for."""
        taken = [each for each in other._waiting if each[1].call_id in call_ids]
        self._waiting += other._taken(taken)

    def show(self, node: Node, step: Step, *, in_turn: bool = False) -> None:
        """Take note of a span that shows a tool call: the one with its id, else one like it.

        A framework may call its tools otherwise than the model does, so any call of the agent will
        do if there is none of that name. `in_turn` says that a model call goes on: where answers
        are streamed, calls begin before these end.
        """
        self.have_spans = True
        found = self._like(node, step) if self._waiting else None
        if found is not None:
            self._waiting = [each for each in self._waiting if each is not found]
        elif in_turn:
            self._early.append((node, Step(kind="tool", name=step.name, call_id=step.call_id)))
            del self._early[:-WAITING]

    def answered(self, node: Node, given: ModelInput) -> list[Step]:
        """Return the calls of an agent that its model is told the results of, with these."""
        self._early.clear()
        own = [each for each in self._waiting if each[0].agent_id == node.agent_id]
        results = {answer.call_id: answer.result for answer in given.answers}
        found = [each for each in own if each[1].call_id in results]
        told = [results[call.call_id or ""] for _, call in found]
        if own and not found and given.answers and all(map(_is_an_item, own)):
            # The last of parallel calls are answered after the model's last message, no others.
            last = [answer.result for answer in given.answers][-len(own) :]
            found, told = own, [UNKNOWN] * (len(own) - len(last)) + last
        self._called += len(found)
        return [
            _step(asker, call, result)
            for (asker, call), result in zip(self._taken(found), told, strict=True)
        ]

    def happened(self, node: Node) -> list[Step]:
        """Return the calls that must have happened now that their agent has asked again.

        That is where the model's input is not shown, and no tool has spans.
        """
        self._early.clear()
        own = [each for each in self._waiting if each[0].agent_id == node.agent_id]
        if self.have_spans:
            return []
        self._called += len(own)
        return [_step(*each) for each in self._taken(own)]

    def left(self) -> int:
        """Return how many calls the last turns have asked for that were made before the run ended.

        Where tools have spans, or no call without one has ever been made, they were no calls of
        tools but the framework's way of answering, or of handing over.
        """
        return len(self._waiting) if self._called and not self.have_spans else 0

    @property
    def without_spans(self) -> int:
        """How many calls were made of which no span tells; none where a tool has one."""
        return 0 if self.have_spans else self._called + self.left()

    def _like(self, node: Node, step: Step) -> tuple[Node, ToolCall] | None:
        own = [each for each in self._waiting if each[0].agent_id == node.agent_id]
        ordered = [*own, *(each for each in self._waiting if each not in own)]
        named = [each for each in ordered if same_tool(each[1].name, step.name)]
        by_id = [each for each in named if step.call_id and each[1].call_id == step.call_id]
        if by_id or len(named) == 1:
            return (by_id or named)[0]
        equal = [each for each in named if _same(each[1], step)]
        return next(iter(equal or named or own), None)

    def _taken(self, found: list[tuple[Node, ToolCall]]) -> list[tuple[Node, ToolCall]]:
        taken = {id(each) for each in found}
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        return found


def _step(asker: Node, call: ToolCall, result: object = UNKNOWN) -> Step:
    return asker.placed(
        Step(
            kind="tool",
            name=call.name,
            arguments=call.arguments,
            result=result,
            call_id=call.call_id,
            spanless=True,
            span=asker.key,
        )
    )


def _is_an_item(waiting: tuple[Node, ToolCall]) -> bool:
    """Say whether a call is named by the id of an item in an answer of OpenAI's Responses API.

    OpenLLMetry's spans do that, and inputs name the call itself; so the order has to tell.
    """
    return (waiting[1].call_id or "").startswith("fc_")


def _same(call: ToolCall, step: Step) -> bool:
    asked, made = canonical(call.arguments), canonical(step.arguments)
    return asked is not UNKNOWN and asked == made
