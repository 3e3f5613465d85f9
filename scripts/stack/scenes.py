"""Runs that go wrong, each in its own way, so that every metric and every rule gets something."""

from __future__ import annotations

import itertools

from opentelemetry import context, trace

from scripts.stack.acting import Attributes, chat, run, tool, tracer

LONG_NAME = "research-and-summarise-quarterly-reports-agent-europe-west"
STEPS_TO_TRIP = 8
AGENTS = 80
TOOLS_EACH = 3
CONVERSATIONS = 1_100
OPEN_RUNS = 4_200
SPANS_EACH = 3
"""So that more spans are open than are remembered, too."""
IDS = 8_400
IDS_EACH = 100

_number = itertools.count()


def healthy(agent: str) -> None:
    """A few different calls, and an answer."""
    with run(agent):
        for page in range(3):
            chat(says=f"page {page}", asks="read")
            tool("read", {"page": page}, f"text of {page}")
        chat(says="The answer is 42.")


def repeating(agent: str, name: str = "search") -> None:
    """The same call, with the same result."""
    with run(agent):
        for _ in range(STEPS_TO_TRIP):
            tool(name, {"query": "weather"})


def going_round(agent: str) -> None:
    """Two calls in turn."""
    with run(agent):
        for number in range(2 * STEPS_TO_TRIP):
            tool(("list", "open")[number % 2], {"path": "/"}, ("a", "b")[number % 2])


def failing(agent: str) -> None:
    """The same error, again and again."""
    with run(agent):
        for number in range(STEPS_TO_TRIP):
            tool("fetch", {"attempt": number}, fails="TimeoutError")


def truncated(agent: str) -> None:
    """Answers that are cut off."""
    with run(agent):
        for number in range(4):
            chat(says=f"part {number}", finish="length")


def endless(agent: str) -> None:
    """Ever new calls, until a limit is reached."""
    with run(agent):
        for number in range(60):
            tool("crawl", {"page": number}, f"text of {number}")


def blind(agent: str) -> None:
    """Steps that show nothing but that they happened."""
    with run(agent):
        for _ in range(12):
            tool("hidden", None, None)
            chat(None, says=None)


def without_tool_spans(agent: str) -> None:
    """A model that asks for tools, which have no spans."""
    with run(agent):
        for number in range(6):
            chat(says=f"turn {number}", asks="search")
        chat(says="The answer is 42.")


def dear(agent: str) -> None:
    """Model calls that cost 25 dollars each."""
    with run(agent):
        for number in range(3):
            chat((10_000_000, 10_000), says=f"chapter {number}")


def odd(agent: str) -> None:
    """A span that the guard cannot read."""
    with run(agent), tracer.start_as_current_span("odd"):
        pass


def slow() -> None:
    """Spans of an application, some of which the guard takes long over."""
    for name in ("slow", "work", "work", "work", "work"):
        with tracer.start_as_current_span(name):
            pass


def many_names() -> None:
    """Series beyond those that the SDK keeps apart, and tools beyond those that the guard does."""
    for number in range(AGENTS * TOOLS_EACH):
        repeating(f"worker-{number % AGENTS:02d}", f"tool-{number:03d}")


def full_stores() -> None:
    """More conversations, ids, runs and spans than are remembered."""
    for _ in range(CONVERSATIONS):
        with run("filler", f"conversation-{next(_number)}"):
            pass
    with run("filler"):
        for _ in range(IDS // IDS_EACH):
            chat(asks="noop", times=IDS_EACH)
    spans = [span for _ in range(OPEN_RUNS) for span in _open_run()]
    for span in spans:
        span.end()


def _open_run() -> list[trace.Span]:
    invoked: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "filler",
    }
    root = tracer.start_span("invoke_agent filler", context.Context(), attributes=invoked)
    inside = trace.set_span_in_context(root)
    # Spans of the application, which are no steps.
    return [root, *(tracer.start_span("work", inside) for _ in range(SPANS_EACH))]
