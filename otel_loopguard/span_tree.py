"""Where spans hang: every span seen a while ago or still open, and the one above it. Bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import StepKind

if TYPE_CHECKING:
    from otel_loopguard.runs import Run

SPANS = 16_384
"""Spans known at a time; past that the oldest is forgotten, open or not."""

ENDED = 4_096
"""Ended spans kept: instrumentations hang new spans below ones that are over."""


class Node:
    """A span that was seen: where it hangs, and what became of its step."""

    __slots__ = (
        "agent",
        "claimed",
        "is_open",
        "is_sampled",
        "kind",
        "live",
        "name",
        "parent",
        "prevented",
        "read",
        "refused",
        "run",
        "span_id",
        "step_name",
        "trace_id",
    )

    def __init__(self, record: SpanRecord, parent: Node | None, live: object) -> None:
        self.trace_id = record.trace_id
        self.span_id = record.span_id
        self.name = record.name
        self.parent = parent
        self.live = live
        """The span itself, while it is open in this process."""
        self.is_open = True
        self.is_sampled = record.is_sampled
        self.run: Run | None = None
        self.agent: str = "" if parent is None else parent.agent
        self.read = False
        """It showed what it is, and has joined a run."""
        self.kind: StepKind | None = None
        """The kind of its step; `None` while it is nobody's, or if it is part of one above."""
        self.step_name = ""
        """The name of its step: the tool's, the model's or the agent's."""
        self.refused = False
        """Its step was refused when it started, and has not been counted."""
        self.claimed = False
        """A model request has been let through for it."""
        self.prevented = False
        """Its step did not happen: the model request below it was refused."""

    def upwards(self) -> Iterator[Node]:
        """Yield this span and those above it, nearest first."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def run_above(self) -> Run | None:
        """Return the nearest run that goes on, from here upwards."""
        return next((n.run for n in self.upwards() if n.run is not None and not n.run.ended), None)

    def local_root(self) -> Node:
        """Return the topmost span that is open; this one if none above it is."""
        return [node for node in self.upwards() if node is self or node.is_open][-1]


class SpanTree:
    """All nodes by span id."""

    __slots__ = ("_ended", "_nodes", "evicted")

    def __init__(self) -> None:
        self._nodes: OrderedDict[int, Node] = OrderedDict()
        self._ended: deque[Node] = deque()
        self.evicted = 0
        """Open spans that were forgotten because too many were open at once."""

    def get(self, span_id: int) -> Node | None:
        """Return the span's node, if it is known."""
        return self._nodes.get(span_id)

    def enter(self, record: SpanRecord, live: object = None) -> Node:
        """Hang a span below its parent, if that is known and of this process."""
        above = None
        if record.parent_id is not None and not record.parent_is_remote:
            above = self._nodes.get(record.parent_id)
        node = Node(record, above, live)
        self._nodes[record.span_id] = node
        if len(self._nodes) > SPANS:
            self._forget(next(iter(self._nodes.values())))
            self.evicted += 1
        return node

    def close(self, node: Node) -> None:
        """Mark a span as ended and keep it for a while."""
        node.is_open, node.live = False, None
        self._ended.append(node)
        if len(self._ended) > ENDED:
            self._forget(self._ended.popleft())

    def _forget(self, node: Node) -> None:
        if self._nodes.get(node.span_id) is node:
            del self._nodes[node.span_id]
        node.parent = node.live = None
