"""Runs of an agent as spans, each timed alone: what `bench_processor` plays."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from opentelemetry.trace import Tracer
from opentelemetry.util.types import AttributeValue

RUNS = 4
"""Runs of an agent in a round."""
PAIRS = 20
"""Model turns with a tool call each, in a run."""
LONG = 20_000
"""Characters of the messages that a model is given."""

Attributes = dict[str, AttributeValue]

AGENT: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
CLIENT: Attributes = {
    "http.request.method": "GET",
    "url.full": "https://example.org/v1/reports?page=2",
    "url.scheme": "https",
    "server.address": "example.org",
    "server.port": 443,
    "network.peer.address": "203.0.113.7",
    "network.protocol.version": "1.1",
    "user_agent.original": "python/3",
    "http.request.resend_count": 0,
    "http.response.status_code": 200,
}
DEFINITIONS = json.dumps(
    [
        {
            "type": "function",
            "name": name,
            "description": f"{name.title()} the reports of companies. " * 3,
            "parameters": {
                "type": "object",
                "properties": {
                    field: {"type": "string", "description": f"The {field} to look for."}
                    for field in ("query", "note", "language", "since")
                },
                "required": ["query"],
            },
        }
        for name in ("search", "fetch", "read_file", "run_query", "summarise")
    ]
)


def arguments(number: int) -> dict[str, object]:
    """Return arguments of some 500 characters as JSON, none like another."""
    return {
        "query": f"annual report of company {number} and its subsidiaries, audited",
        "note": "figures in euros, rounded to whole thousands, without discontinued lines. " * 5,
        "limit": 20,
        "fields": ["title", "summary", "published"],
    }


def result(number: int) -> str:
    """Return a text of 500 characters, none like another."""
    told = f"{number} reports: revenue of {number * 7_919} thousand, {number * 31} employees. "
    return (told + "The companies of the group are listed in the annex with their shares. " * 9)[
        :500
    ]


def call(number: int) -> dict[str, object]:
    named = {"type": "tool_call", "id": f"call_{number}", "name": "search"}
    return {**named, "arguments": arguments(number)}


def asked(number: int) -> dict[str, object]:
    return {"role": "assistant", "parts": [call(number)]}


def answered(number: int) -> dict[str, object]:
    part = {"type": "tool_call_response", "id": f"call_{number}", "response": result(number)}
    return {"role": "tool", "parts": [part]}


def conversation(number: int) -> str:
    """Return JSON of what the model is given for its turn: some 20,000 characters."""
    history = [
        message
        for earlier in range(number - 15, number)
        for message in (asked(earlier), answered(earlier))
    ]
    question = {"role": "user", "parts": [{"type": "text", "content": "Compare the reports."}]}
    whole = json.dumps([question, *history])
    padding = "x" * max(0, LONG - len(whole))
    system = {"role": "system", "parts": [{"type": "text", "content": padding}]}
    return json.dumps([system, question, *history])


def turn(number: int) -> str:
    """Return JSON of what the model answers with: a call, and some text beside it."""
    text = {"type": "text", "content": "I look for the next report now. " * 8}
    parts = [text, call(number)]
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}])


CONVERSATIONS = [conversation(number) for number in range(PAIRS)]
TURNS = [turn(number) for number in range(PAIRS)]
ARGUMENTS = [json.dumps(arguments(number)) for number in range(PAIRS)]
RESULTS = [result(number) for number in range(PAIRS)]


def anew(text: str) -> str:
    """Return the same text as another object, of which nothing is known yet, not even the hash."""
    return "".join((text[:1], text[1:]))


class Clock:
    """Adds up what the spans of each kind took, in nanoseconds, less what it takes to look."""

    def __init__(self) -> None:
        self.cpu_ns: dict[str, list[int]] = defaultdict(list)
        self.wall_ns: dict[str, list[int]] = defaultdict(list)

    def time(self, kind: str, action: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        action()
        cpu_end, wall_end = time.thread_time_ns(), time.perf_counter_ns()
        self.cpu_ns[kind].append(cpu_end - cpu)
        self.wall_ns[kind].append(wall_end - wall)


def tool_span(tracer: Tracer, number: int, given: str, came: str) -> None:
    with tracer.start_as_current_span(
        "execute_tool search",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{number}",
        },
    ) as span:
        span.set_attribute("gen_ai.tool.call.arguments", given)
        span.set_attribute("gen_ai.tool.call.result", came)


def model_span(tracer: Tracer, number: int, given: str, said: str, offered: str) -> None:
    with tracer.start_as_current_span(
        "chat m-large",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m-large",
            "server.address": "example.org",
        },
    ) as span:
        span.set_attributes(
            {
                "gen_ai.response.model": "m-large-2026",
                "gen_ai.response.id": f"resp_{number}",
                "gen_ai.response.finish_reasons": ["tool_calls"],
                "gen_ai.usage.input_tokens": 5200,
                "gen_ai.usage.output_tokens": 60,
                "gen_ai.input.messages": given,
                "gen_ai.output.messages": said,
                "gen_ai.tool.definitions": offered,
            }
        )


def other_span(tracer: Tracer) -> None:
    with tracer.start_as_current_span("GET", attributes=CLIENT):
        pass


def nothing() -> None:
    pass


def play(tracer: Tracer, clock: Clock) -> None:
    """Let an agent run some times."""
    for _ in range(RUNS):
        clock.time("", nothing)
        began = time.thread_time_ns(), time.perf_counter_ns()
        with tracer.start_as_current_span("invoke_agent scout", attributes=AGENT):
            for number in range(PAIRS):
                texts = (CONVERSATIONS[number], TURNS[number], DEFINITIONS)
                model = partial(model_span, tracer, number, *map(anew, texts))
                clock.time("model call", model)
                shown = (ARGUMENTS[number], RESULTS[number])
                tool = partial(tool_span, tracer, number, *map(anew, shown))
                clock.time("tool call", tool)
                clock.time("nobody's step", partial(other_span, tracer))
        spans = 3 * PAIRS + 1
        clock.cpu_ns["whole run, per span"].append((time.thread_time_ns() - began[0]) // spans)
        clock.wall_ns["whole run, per span"].append((time.perf_counter_ns() - began[1]) // spans)
