"""Tool calls that a model asked for, until a span shows them, or their answers do.

Plain loops around a provider's SDK, and some frameworks, write no span for a tool. The call is then
known from the model's answer: it has happened when the next model call of that agent begins, whose
input brings its result. Bounded.
"""

from __future__ import annotations

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.span_tree import Node
from otel_loopguard.steps import Step, ToolCall
from otel_loopguard.tool_names import same_tool

WAITING = 128
"""Calls of one run that wait to be seen; past that the oldest is forgotten."""


class RequestedCalls:
    """The calls that the model turns of one run have asked for and that no span has shown."""

    __slots__ = ("_early", "_have_no_spans", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[Node, ToolCall]] = []
        self._early: list[tuple[Node, Step]] = []
        """Calls whose spans began while the turn that asks for them was still being told."""
        self._have_no_spans = False
        """Calls of this run have turned out to have happened without a span."""

    def ask(self, node: Node, step: Step) -> None:
        """Take note of what a model turn has asked for."""
        if step.tool_calls is UNKNOWN or not step.tool_calls:
            return
        self._waiting += ((node, call) for call in step.tool_calls)
        del self._waiting[:-WAITING]
        early, self._early = self._early, []
        for shower, shown in early:
            self.show(shower, shown)

    def show(self, node: Node, step: Step, *, in_turn: bool = False) -> None:
        """Take note of a span that shows a tool call: the one with its id, else one like it.

        A framework may call its tools otherwise than the model does, so any call of the agent will
        do if there is none of that name. `in_turn` says that a model call goes on: where answers
        are streamed, calls begin before these end.
        """
        found = self._like(node, step) if self._waiting else None
        if found is not None:
            self._waiting = [each for each in self._waiting if each is not found]
        elif in_turn:
            self._early.append((node, Step(kind="tool", name=step.name, call_id=step.call_id)))
            del self._early[:-WAITING]

    def happened(self, node: Node) -> list[Step]:
        """Return the calls that must have happened now that their agent asks its model again.

        One that a span above may still turn out to be goes on.
        """
        self._early.clear()
        found = self._take(node.agent_id, node) if self._waiting else []
        self._have_no_spans = self._have_no_spans or bool(found)
        return found

    def left(self, agent_id: str | None) -> list[Step]:
        """Return what an agent has asked for last and must have called before it ended.

        Where tools have spans, what has none did not happen: it was the agent's way of answering,
        or of handing over.
        """
        found = self._take(agent_id) if self._waiting else []
        return found if self._have_no_spans else []

    def over(self) -> list[Step]:
        """Return what has been called last when the run ends."""
        self._early.clear()
        agents = dict.fromkeys(asker.agent_id for asker, _ in self._waiting)
        return [step for agent_id in agents for step in self.left(agent_id)]

    def _like(self, node: Node, step: Step) -> tuple[Node, ToolCall] | None:
        waiting, call_id = self._waiting, step.call_id
        for each in waiting:
            if call_id is not None and each[1].call_id == call_id:
                return each
        named = [each for each in waiting if same_tool(each[1].name, step.name)]
        equal = [each for each in named if len(named) > 1 and _same(each[1], step)]
        others = [each for each in waiting if each[0].agent_id == node.agent_id]
        return next(iter(equal or named or others), None)

    def _take(self, agent_id: str | None, below: Node | None = None) -> list[Step]:
        above = () if below is None else below.upwards()
        unread = [node.name for node in above if not node.read and node.is_open]
        found: list[Step] = []
        kept: list[tuple[Node, ToolCall]] = []
        for asker, call in self._waiting:
            goes_on = any(same_tool(name, call.name) for name in unread)
            if asker.agent_id == agent_id and not goes_on:
                found.append(_step(asker, call))
            else:
                kept.append((asker, call))
        self._waiting = kept
        return found


def _step(asker: Node, call: ToolCall) -> Step:
    return asker.placed(
        Step(
            kind="tool",
            name=call.name,
            arguments=call.arguments,
            call_id=call.call_id,
            spanless=True,
            span=asker.key,
        )
    )


def _same(call: ToolCall, step: Step) -> bool:
    asked, made = canonical(call.arguments), canonical(step.arguments)
    return asked is not UNKNOWN and asked == made
