"""Spans that hang in the wrong place, and where they belong.

OpenInference's LangChain package attaches no context: the provider's span of a model call starts a
trace of its own while the framework's span of the same call is open. OpenLLMetry's package for the
OpenAI Agents SDK hangs each agent below the workflow, also one that a tool call runs.
"""

from __future__ import annotations

import msgspec

from otel_loopguard.dialects import READ_BY_PLACE
from otel_loopguard.places import CALLS
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node, SpanTree
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

UNATTACHED = frozenset({"openinference.instrumentation.langchain"})
"""Scopes of spans that are never made current, so that what is below them has no parent."""

ECHOES = frozenset({"com.anthropic.sdk.python"})
"""Scopes whose spans show, side by side with those of others, model calls that those show too: the
Anthropic SDK writes its own ones whatever else instruments it."""

FLAT = frozenset({"opentelemetry.instrumentation.openai_agents"})
"""Scopes whose agents hang below the workflow, whatever runs them."""

OPEN = 1_024
"""Open spans without an open one below that are known; past that the oldest is forgotten."""


def in_its_place(record: SpanRecord, node: Node | None) -> SpanRecord:
    """Return a span for a dialect to read, with what only the spans above it tell."""
    above = None if node is None or record.scope not in READ_BY_PLACE else node.parent
    if above is None or above.stands_in:
        return record
    if any(each.scope == record.scope for each in above.upwards()):
        return record
    return msgspec.structs.replace(record, is_topmost=True)


def caller_of(node: Node, record: SpanRecord) -> Node | None:
    """Return the tool call that runs an agent which hangs elsewhere; `None` if not known."""
    run = node.run_above() if record.scope in FLAT else None
    around = None if run is None else node.counted_above()
    if run is None or (around is not None and around.kind == "tool"):
        return None
    callers = [call for call in run.open_tools if not call.delegates]
    return callers[0] if len(callers) == 1 else None


def hang_below_call(node: Node, spans: SpanTree, teller: object = None) -> None:
    """Hang a span below the call that the code around it has told of, if it is made in there.

    Two calls that the same `teller` tells of are two at once.
    """
    for span_id, other in CALLS.get():
        call = spans.get(span_id)  # another guard has its own
        is_around = call is not None and call.is_open and call.parent is node.parent
        if call is not None and is_around and other is not teller:
            node.hang_below(call)


def is_prevented(node: Node, step: Step) -> bool:
    """Say whether the step of a span that ends is a model call whose request was refused.

    One that shows only now what it is may not have been made current: then its request was made
    right in a span around it, and those between the two show the same call.
    """
    if step.kind != "llm":
        return False
    shown_by: list[Node] = []
    for above in () if node.read or node.prevented or node.claimed else node.upwards():
        if above.in_vain:
            above.in_vain = False
            for each in shown_by:
                each.prevented = True
            break
        if above.read:
            break
        shown_by.append(above)
    return node.prevented


class Unattached:
    """The open spans that are not made current, down to the last."""

    __slots__ = ("_leaves",)

    def __init__(self) -> None:
        self._leaves: dict[Node, int] = {}
        """How many of the spans right below each are open."""

    def started(self, node: Node, record: SpanRecord) -> None:
        """Take in a span that starts."""
        if record.scope not in UNATTACHED:
            return
        self._leaves[node] = 0
        if node.parent in self._leaves:
            self._leaves[node.parent] += 1
        if len(self._leaves) > OPEN:
            del self._leaves[next(iter(self._leaves))]

    def ended(self, node: Node) -> None:
        """Take in a span that has ended."""
        if self._leaves.pop(node, None) is not None and node.parent in self._leaves:
            self._leaves[node.parent] -= 1

    def leaf(self, run: Run | None, *, may_stop: bool = False) -> Node | None:
        """Return the span that a model call without a parent is made in; `None` if there is none.

        That is the last one that has none below it, in the run of the calling code. Where that is
        not known, it is in the only run there is; not if that has tripped and calls of it may be
        stopped: this one may be somebody else's.
        """
        found = [
            (node, node.run_above())
            for node, below in self._leaves.items()
            if not below and node.below is None and node.told is None
        ]
        runs = {each for _, each in found}
        tripped = may_stop and any(each is None or each.trip is not None for each in runs)
        if run is None and (len(runs) != 1 or tripped):
            return None
        own = [node for node, each in found if run is None or each is run]
        return own[-1] if own else None
