"""One call, several spans: which of them counts, and what the others add to it.

A framework's span around a provider's shows one model call twice; a tool's span around a protocol's
shows one tool call twice; an instrumentation's inside a framework's shows an agent twice. They hang
below each other, stand side by side, or know nothing of each other at all. The first to show what
it is counts; the others are part of it.
"""

from __future__ import annotations

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.misplaced import ECHOES
from otel_loopguard.places import TOLD
from otel_loopguard.runs import Run
from otel_loopguard.span_tree import Node
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from otel_loopguard.tool_names import same_tool


def shown_by(node: Node, step: Step, record: SpanRecord, run: Run) -> Node | None:
    """Return the span that shows the same step already; `None` if this one is the first."""
    if step.kind == "agent":
        return _agent_around(node, step, record, run)
    if step.kind not in ("llm", "tool"):
        return None
    return _around(node, step) or _within(node, step) or _beside(node, step, record, run)


def add_up(node: Node, step: Step) -> Step:
    """Return a step with what the spans that are part of it say.

    The innermost one saw the call itself, so its usage and its ending are believed; what was asked
    and answered the outer ones write in the framework's own terms.
    """
    told = node.told
    if told is None:
        return step
    if node.split:  # what it says of itself is of both requests
        return msgspec.structs.replace(told, **_placing(step))
    innermost = {
        name: value
        for name in ("input_tokens", "output_tokens", "cost_usd", "finish_reasons", "response_id")
        if (value := getattr(told, name)) not in (None, (), "")
    }
    if told.input_tokens is not None:
        innermost["cache_read_tokens"] = told.cache_read_tokens
        innermost["cache_write_tokens"] = told.cache_write_tokens
        innermost["reasoning_tokens"] = told.reasoning_tokens
    missing = {
        name: value
        for name in ("arguments", "result", "output", "tool_calls", "offered_tools")
        if getattr(step, name) is UNKNOWN and (value := getattr(told, name)) is not UNKNOWN
    }
    unnamed = {
        name: getattr(told, name)
        for name in ("name", "model", "provider", "call_id", "error", "span")
        if not getattr(step, name)
    }
    return msgspec.structs.replace(step, **innermost, **missing, **unnamed)


def waits_for_span(node: Node) -> bool:
    """Say whether it stands for a call that its maker has told of, and no span has shown that."""
    return node.scope == TOLD and not node.claimed


def _around(node: Node, step: Step) -> Node | None:
    """Return the call around this one, if that shows it; a second request in there splits it."""
    above = node.counted_above()
    if above is None or above.kind != step.kind:
        return None
    if step.kind == "tool":
        is_nameless = not step.name and (step.call_id is not None or waits_for_span(above))
        # A span may show only at its end what is called, and its maker tell of that meanwhile.
        is_nameless = is_nameless or (not above.step_name and node.scope == TOLD)
        # A tool that asks a model, and by it itself again, is called again.
        again = above.below is not None and above.below.kind == "llm"
        same = is_nameless or (same_tool(above.step_name, step.name) and not again)
        return above if same else None
    # A second request below one call comes after the first has come back: a retry, another model.
    above.split = above.split or _has_come_back(above)
    return None if above.split else above


def _agent_around(node: Node, step: Step, record: SpanRecord, run: Run) -> Node | None:
    """Return the span of the same invocation that another instrumentation has made around this one.

    One that makes a second span itself means an agent that invokes itself.
    """
    above = node.counted_above()
    if above is None or above.kind != "agent" or above.run is not run:
        return None
    is_same = above.step_name == step.name != "" and above.scope != record.scope
    return above if is_same else None


def _within(node: Node, step: Step) -> Node | None:
    """Return the call that was counted inside this one, which shows only now what it is."""
    below = node.below
    if below is None or below.kind != step.kind:
        return None
    return below if step.kind == "llm" or same_tool(below.step_name, step.name) else None


def _beside(node: Node, step: Step, record: SpanRecord, run: Run) -> Node | None:
    """Return the call that goes on beside this one, if that shows it."""
    answer = run.responses.get(step.response_id) if step.response_id else None
    if answer is not None and answer.node is not node and record.started_ns < answer.ended_ns:
        return answer.node  # some servers give each answer the same id, one after the other
    if step.kind == "llm":
        open_calls = run.open_calls if record.scope in ECHOES else ()
        beside = (each for each in open_calls if each.parent is node.parent)
        # Two of its own are two calls at once.
        return next((each for each in beside if each.scope != record.scope), None)
    return _tool_beside(node, step, record, run)


def _tool_beside(node: Node, step: Step, record: SpanRecord, run: Run) -> Node | None:
    """Return the tool call that goes on beside this one, if that shows it.

    A protocol's span shows that of a tool of this name. A span that was made aside shows the call
    of which its maker tells, before it or later: that with its id, else one that waits for a span.
    """
    is_protocol = semconv.MCP_METHOD_NAME in record.attributes
    # Two spans, or two calls that are told of, are two calls at once.
    mixed = [each for each in run.open_tools if (each.scope == TOLD) != (record.scope == TOLD)]
    if not mixed and not is_protocol:
        return None
    by_id = (each for each in mixed if step.call_id and each.call_id == step.call_id)
    above = [*node.upwards()]
    alike = (
        each
        for each in (run.open_tools if is_protocol else mixed)
        if (is_protocol or waits_for_span(each)) and each not in above
        if same_tool(each.step_name, step.name)
    )
    return next(by_id, None) or next(alike, None)


def _placing(step: Step) -> dict[str, object]:
    names = ("name", "agent", "agent_id", "agent_parent_id", "started_s", "ended_s", "span")
    return {name: getattr(step, name) for name in names}


def _has_come_back(call: Node) -> bool:
    told = call.told
    return told is not None and (told.input_tokens is not None or told.error is not None)
