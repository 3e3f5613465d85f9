"""Spans that nobody ends: they are bounded, cost no more with time, and hide no run after them.

The stores are a hundredth of their size here, and so is what passes through them. At full size
100,000 spans add some 100 MB as agents, 50 MB as conversations and 10 MB as tools of one agent.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Generator
from typing import Any

import pytest
from opentelemetry.context import Context

from otel_loopguard import LoopGuard, Policy, joins, open_runs, runs, span_tree
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT
from otel_loopguard.span_tree import Node
from tests._tracing import Traced, traced

SPANS, BATCHES = 150, 6
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "t",
    "gen_ai.tool.call.arguments": "{}",
}
MODEL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Generator[Traced]:
    for module, store in (
        (span_tree, "SPANS"),
        (span_tree, "ENDED"),
        (open_runs, "RUNS"),
        (open_runs, "ROOTLESS"),
        (joins, "JOINS"),
        (runs, "OPEN_CALLS"),
    ):
        monkeypatch.setattr(module, store, getattr(module, store) // 100)
    with traced(export=False) as made:
        yield made


def abandon(process: Traced, kind: str, number: int, top: Any) -> None:
    """Start a span and let it go."""
    start, named = process.tracer.start_span, {"gen_ai.conversation.id": f"c{number}"}
    if kind == "agents":
        start("invoke_agent a", context=Context(), attributes=AGENT)
    elif kind == "tools":
        with process.below(top):
            start("execute_tool t", attributes=TOOL)
    elif kind == "models":
        start("chat m", context=Context(), attributes=MODEL)
    else:
        start("execute_tool t", context=Context(), attributes={**TOOL, **named})


@pytest.mark.parametrize(
    ("kinds", "lost"),
    [
        (["agents"], {"spans", "runs"}),
        (["tools"], {"spans"}),
        (["models"], {"spans"}),
        (["conversations"], {"spans", "runs"}),
        (["agents", "tools", "models", "conversations"], {"spans", "runs"}),
    ],
)
def test_spans_that_nobody_ends(process: Traced, kinds: list[str], lost: set[str]) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=10**9))
    top = process.tracer.start_span("invoke_agent top", attributes=AGENT)
    sizes: list[int] = []
    times_s: list[float] = []
    for batch in range(BATCHES):
        CURRENT.set(None)
        began_s = time.thread_time()
        for number in range(SPANS):
            each = batch * SPANS + number
            abandon(process, kinds[each % len(kinds)], each, top)
        times_s.append(time.thread_time() - began_s)
        gc.collect()
        sizes.append(sum(type(each) in (Node, Run, LoopGuard) for each in gc.get_objects()))

    assert sizes[-1] < sizes[2] + SPANS // 2, "after the stores are full nothing is added"
    assert min(times_s[-2:]) < 3 * max(times_s[:2])
    assert process.counts("loopguard.errors") == []
    evicted = {
        labels["loopguard.store"] for labels, n in process.counts("loopguard.evictions") if n
    }
    assert lost <= evicted


@pytest.mark.parametrize("kind", ["agents", "tools", "models", "conversations"])
def test_runs_that_come_after_them(process: Traced, kind: str) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=5))
    top = process.tracer.start_span("invoke_agent top", attributes=AGENT)
    for number in range(400):
        abandon(process, kind, number, top)
    before = process.total("loopguard.violations")
    with process.agent("healthy"):
        process.work(5)
    assert process.total("loopguard.violations") == before
    with process.agent("runaway"):
        process.work(6)

    assert process.total("loopguard.violations") == before + 1
    steps = {
        point.attributes["gen_ai.agent.name"]: point.sum
        for point in process.points("loopguard.run.steps")
    }
    assert (steps["healthy"], steps["runaway"]) == (10, 12)


def test_spans_that_are_let_go_are_collected(process: Traced) -> None:
    process.guard()
    gone: list[weakref.ref[Any]] = []
    for number in range(50):
        agent: Any = process.tracer.start_span("invoke_agent a", context=Context())
        with process.below(agent):
            tool: Any = process.tracer.start_span(f"execute_tool {number}", attributes=TOOL)
        gone += [weakref.ref(agent), weakref.ref(tool)]
        del agent, tool
    gc.collect()

    assert [each for each in gone if each() is not None] == []
