"""Where spans hang: every span seen a while ago or still open, and the one above it. Bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from weakref import ref

import msgspec

from otel_loopguard.registry import names
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import SpanKey, Step, StepKind

if TYPE_CHECKING:
    from otel_loopguard.runs import Run

SPANS = 16_384
"""Spans known at a time; past that the oldest is forgotten, open or not."""

ENDED = 4_096
"""Ended spans kept: instrumentations hang new spans below ones that are over."""


class Node(msgspec.Struct, eq=False):
    """A span that was seen: where it hangs, and what became of its step."""

    trace_id: int
    span_id: int
    name: str
    parent: Node | None
    is_sampled: bool
    agent: str
    agent_id: str | None
    """The nearest agent's span at or above this one: which invocation that is."""
    agent_parent_id: str | None
    """The agent's span above that one."""
    conversation: str | None
    """The id of the conversation; known only where limits are held against conversations."""
    _live: ref[object] | None
    # Weak, because a span that nobody ends is never told of again, and may hold much.
    stands_in: bool
    """For a span that was not seen to start: only its children were."""
    is_open: bool = True
    run: Run | None = None
    read: bool = False
    """It showed what it is, and has joined a run."""
    kind: StepKind | None = None
    """The kind of its step; `None` while it is nobody's, or if it is part of one above."""
    step_name: str = ""
    """The name of its step: the tool's, the model's or the agent's."""
    call_id: str | None = None
    """What the model calls its request for a tool call."""
    refused: bool = False
    """Its step was refused when it started, and has not been counted."""
    against: bool = False
    """Its run, or one around that, had tripped when it started, or tripped by that."""
    claimed: bool = False
    """A model request has been let through for it, or the span of a call that was told of shows."""
    prevented: bool = False
    """Its step did not happen: the model request below it was refused."""
    in_vain: bool = False
    """A model request that was made right in it was refused, and no step is known that it is of."""
    vetoed: bool = False
    """Its step did not happen: the span let the refusal out, or says so from the start."""
    part_of: Node | None = None
    """The span that shows the same step, and is the one that counts."""
    below: Node | None = None
    """The latest model or tool call below it that counts, with no other between."""
    calls_tools: bool = False
    """Tool calls, or agents, below it count, with none between."""
    awaits: bool = False
    """A model call whose request, or whose end, is to show which run it belongs to."""
    told: Step | None = None
    """What the spans that are part of this one say of its step."""
    split: bool = False
    """More than one request was made inside it: what it says of itself is of all of them."""
    unsure: bool = False
    """Its end should show what the model call was told: results of calls, or a person's word."""
    delegates: bool = False
    """It is a tool call that runs an agent."""
    scope: str = ""
    """What made the span."""

    @property
    def key(self) -> SpanKey:
        """Which span it is."""
        return SpanKey(self.trace_id, self.span_id)

    @property
    def live(self) -> object:
        """The span itself, while it is open in this process and somebody can still end it."""
        return None if self._live is None else self._live()

    @property
    def is_lost(self) -> bool:
        """Whether the span is open, and nobody is left who could end it."""
        return self.is_open and self._live is not None and self._live() is None

    def invoke(self, agent: str) -> None:
        """Become the span of an agent's invocation, inside that of the agent above."""
        self.agent = agent
        self.agent_parent_id, self.agent_id = self.agent_id, f"{self.span_id:016x}"

    def move(self, run: Run) -> None:
        """Belong to the run that its request is of; the end of it tells that run of its step."""
        if self.run is not None:
            self.run.open_calls.pop(self, None)
        self.run, self.kind, self.read, self.claimed, self.awaits = run, None, False, True, True
        run.keep_open(self)  # tools may begin before it has ended

    def placed(self, step: Step, *, timed: bool = True) -> Step:
        """Return a step of this span as one of the agent, and of its invocation, that it is in.

        If not `timed`, it brings no time of its own.
        """
        return msgspec.structs.replace(
            step,
            agent=self.agent or step.agent,
            agent_id=self.agent_id or step.agent_id,
            agent_parent_id=self.agent_parent_id or step.agent_parent_id,
            started_s=step.started_s if timed else None,
            ended_s=step.ended_s if timed else None,
        )

    def leave_to_parent(self) -> None:
        """Hold together what a forked child hangs below it: its step is the parent process's."""
        self.stands_in = self.read = True
        self.run = self.kind = self.part_of = self.below = None
        self.refused = self.claimed = self.prevented = self.awaits = self.unsure = False
        self.calls_tools = self.delegates = self.split = self.vetoed = self.in_vain = False

    def forget_live(self) -> None:
        """Let go of the span itself: it has ended, or is forgotten."""
        self._live = None

    def upwards(self) -> Iterator[Node]:
        """Yield this span and those above it, nearest first."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def run_above(self) -> Run | None:
        """Return the nearest run that goes on, from here upwards."""
        for node in self.upwards():
            if node.run is not None and not node.run.ended:
                return node.run
        return None

    def hang_below(self, parent: Node) -> None:
        """Belong to another span, unless that is below it: the instrumentation did not say so."""
        if self in parent.upwards():
            return
        self.parent, self.conversation = parent, self.conversation or parent.conversation
        self.agent, self.agent_id = parent.agent, parent.agent_id
        self.agent_parent_id = parent.agent_parent_id

    def counted_above(self) -> Node | None:
        """Return the nearest open span above that shows a step of its own; agents are some."""
        node = self.parent
        while node is not None and (node.kind is None or not node.is_open):
            node = node.parent
        return node

    def awaiting(self) -> Node | None:
        """Return the model call above whose run is not known yet."""
        above = () if self.parent is None else self.parent.upwards()
        return next((each for each in above if each.awaits and each.is_open), None)

    def mark_above(self) -> None:
        """Let the spans around a call know of it: they may show only at their end what they are."""
        for above in () if self.parent is None else self.parent.upwards():
            above.below = self
            if above.kind is not None:
                return
            above.calls_tools = above.calls_tools or self.kind in {"tool", "agent"}

    def local_root(self) -> Node:
        """Return the topmost span that is open; this one if none above it is."""
        return [node for node in self.upwards() if node is self or node.is_open][-1]


def _node(
    record: SpanRecord, parent: Node | None, live: object, *, stands_in: bool = False
) -> Node:
    """Return the node of a span, in the agent and the conversation of the span above."""
    agent, agent_id, agent_parent_id, conversation = (
        ("", None, None, None)
        if parent is None
        else (parent.agent, parent.agent_id, parent.agent_parent_id, parent.conversation)
    )
    return Node(
        record.trace_id,
        record.span_id,
        record.name,
        parent,
        record.is_sampled,
        agent,
        agent_id,
        agent_parent_id,
        conversation,
        None if live is None else ref(live),
        stands_in,
        vetoed=bool(record.attributes.get(names.STEP_PREVENTED)),
        scope=record.scope,
    )


class SpanTree:
    """All nodes by span id.

    Args:
        on_evicted: told of each open span that is forgotten because too many were open at once.

    """

    __slots__ = ("_ended", "_nodes", "_on_evicted", "evicted")

    def __init__(self, on_evicted: Callable[[Node], object] | None = None) -> None:
        self._on_evicted = on_evicted
        self._nodes: OrderedDict[int, Node] = OrderedDict()
        self._ended: deque[Node] = deque()
        self.evicted = 0
        """Open spans that were forgotten because too many were open at once."""

    def get(self, span_id: int) -> Node | None:
        """Return the span's node, if it is known."""
        return self._nodes.get(span_id)

    def is_known(self, record: SpanRecord) -> bool:
        """Say whether a span that starts has been told of before, and goes on."""
        node = self._nodes.get(record.span_id)
        return (
            node is not None
            and node.is_open
            and not node.stands_in
            and not node.is_lost
            and node.trace_id == record.trace_id
        )

    def enter(self, record: SpanRecord, live: object = None) -> Node:
        """Hang a span below its parent, if that is of this process."""
        node = _node(record, self._above(record), live)
        self._nodes[record.span_id] = node
        while len(self._nodes) > SPANS:
            self._evict(next(iter(self._nodes.values())))
        return node

    def leave_to_parent(self) -> None:
        """Go on in a forked child: what is open is over when the parent process ends it."""
        self.evicted = 0
        for node in list(self._nodes.values()):
            node.leave_to_parent()

    def close(self, node: Node) -> None:
        """Mark a span as ended and keep it for a while."""
        node.is_open, node.below = False, None
        node.forget_live()
        self._keep_a_while(node)

    def _above(self, record: SpanRecord) -> Node | None:
        """Return the parent's node.

        If the parent was not seen to start, a node stands in for it, to hold its children together.
        A span that has ended already has none to come.
        """
        if record.parent_id in (None, record.span_id) or record.parent_is_remote:
            return None
        known = self._nodes.get(record.parent_id)
        if known is not None or record.ended_ns is not None:
            return known
        unseen = SpanRecord(name="", trace_id=record.trace_id, span_id=record.parent_id)
        node = self._nodes[record.parent_id] = _node(unseen, None, None, stands_in=True)
        self._keep_a_while(node)
        return node

    def _keep_a_while(self, node: Node) -> None:
        self._ended.append(node)
        if len(self._ended) > ENDED:
            self._forget(self._ended.popleft())

    def _evict(self, node: Node) -> None:
        self._forget(node)
        if node.is_open:
            self.evicted += 1
            if self._on_evicted is not None:
                self._on_evicted(node)

    def _forget(self, node: Node) -> None:
        if self._nodes.get(node.span_id) is node:
            del self._nodes[node.span_id]
        node.parent = None
        node.forget_live()
