"""What the guard costs a span, beside a processor that does nothing.

Two tracer providers as users have them, each with a batch exporter that encodes OTLP and sends it
nowhere: one with a processor that does nothing, one with the guard (default policy, observe mode).
An agent runs on both: forty steps, model and tool in turn, with an HTTP client's span after each
pair, which is nobody's step. All run in this process, in short rounds that take turns, so that a
busy machine slows both alike.

Each span is timed alone, from before its start until after its end, attributes included, by the
CPU time of the application's thread and by the clock on the wall. Texts are made anew for each
span, outside of that time, as instrumentations make them.

    python benchmarks/bench_processor.py [--quick] [--parts]

`--parts` prints as well where the time goes, by wrapping functions in clocks: those figures are for
comparison with each other.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer
from opentelemetry.util.types import AttributeValue

from otel_loopguard import LoopGuardSpanProcessor, processor, tracker
from otel_loopguard.guard import LoopGuard
from otel_loopguard.run_finder import RunFinder

ROUNDS = 60
RUNS = 4
"""Runs of an agent in a round."""
PAIRS = 20
"""Model turns with a tool call each, in a run."""
LONG = 20_000
"""Characters of the messages that a model is given."""
KINDS = ("nobody's step", "tool call", "model call", "whole run, per span")


class Nowhere(SpanExporter):
    """Encodes spans as for a collector, and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


class Nothing(SpanProcessor):
    """Does nothing, in Python, as a guard that costs nothing would."""

    def on_start(self, span: object, parent_context: object = None) -> None:
        pass

    def on_end(self, span: ReadableSpan) -> None:
        pass


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


class Arm:
    """A provider, and what spans cost on it, round by round, in microseconds."""

    def __init__(self, watcher: SpanProcessor) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(watcher)
        exporter = BatchSpanProcessor(Nowhere(), max_queue_size=100_000)
        self.provider.add_span_processor(exporter)
        self.tracer = self.provider.get_tracer("benchmark")
        self.cpu_us: dict[str, list[float]] = defaultdict(list)
        self.wall_us: dict[str, list[float]] = defaultdict(list)

    def play(self) -> None:
        """Let the agent run; what an interruption costs is left out by taking the median."""
        clock = Clock()
        play(self.tracer, clock)
        self.provider.force_flush()
        for kept, seen in ((self.cpu_us, clock.cpu_ns), (self.wall_us, clock.wall_ns)):
            look = statistics.median(seen.pop(""))
            for kind, times in seen.items():
                kept[kind].append((statistics.median(times) - look) / 1e3)


def compared(bare: Sequence[float], guarded: Sequence[float]) -> tuple[float, float, float]:
    """Return medians: of the cost without the guard, of what it adds, of the ratio of both."""
    pairs = list(zip(bare, guarded, strict=True))
    return (
        statistics.median(bare),
        statistics.median(after - before for before, after in pairs),
        statistics.median(after / before for before, after in pairs),
    )


def made_guard() -> LoopGuardSpanProcessor:
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    return LoopGuardSpanProcessor(mode="observe", meter_provider=meters)


def against_nothing(rounds: int) -> None:
    bare, guarded = Arm(Nothing()), Arm(made_guard())
    for number in range(rounds + 1):
        for arm in (bare, guarded) if number % 2 else (guarded, bare):
            arm.play()
    print(
        f"cost of a span, observe mode, default policy (medians of {rounds} rounds of {RUNS} runs)"
    )
    print(f"  {'':22}{'CPU of its thread, us':>32}{'wall clock, us':>34}")
    for kind in KINDS:
        line = f"  {kind:22}"
        for mine, other in ((bare.cpu_us, guarded.cpu_us), (bare.wall_us, guarded.wall_us)):
            base, added, ratio = compared(mine[kind][1:], other[kind][1:])
            line += f"{base:9.1f} +{added:6.1f} = {ratio:5.2f} x   "
        print(line)


PARTS: Mapping[str, tuple[object, str]] = {
    "span as plain data": (processor, "record_of"),
    "reading the step": (tracker, "read_step"),
    "reading the input": (tracker, "read_input"),
    "tree, entering": (RunFinder, "enter"),
    "tree, leaving": (RunFinder, "leave"),
    "finding the run": (RunFinder, "find"),
    "engine, check": (LoopGuard, "check"),
    "engine, record": (LoopGuard, "record"),
    "telemetry and stops": (LoopGuardSpanProcessor, "_act"),
    "on_start, all": (LoopGuardSpanProcessor, "on_start"),
    "on_end, all": (LoopGuardSpanProcessor, "on_end"),
}
"""Functions that are wrapped in clocks, each looked up where it is called."""


def by_part(rounds: int) -> None:
    """Print where the guard's time goes, for a span of each kind."""
    spent: dict[str, int] = defaultdict(int)

    def timed(part: str, function: Callable[..., object]) -> Callable[..., object]:
        def clocked(*given: object, **named: object) -> object:
            began = time.perf_counter_ns()
            try:
                return function(*given, **named)
            finally:
                spent[part] += time.perf_counter_ns() - began

        return clocked

    for part, (owner, name) in PARTS.items():
        setattr(owner, name, timed(part, getattr(owner, name)))

    class Split(Clock):
        """Keeps what each part took while a span of a kind was made."""

        def __init__(self) -> None:
            super().__init__()
            self.parts: dict[tuple[str, str], list[int]] = defaultdict(list)

        def time(self, kind: str, action: Callable[[], object]) -> None:
            spent.clear()
            action()
            for part in PARTS:
                self.parts[kind, part].append(spent[part])

    clock, arm = Split(), Arm(made_guard())
    for _ in range(rounds):
        play(arm.tracer, clock)
        arm.provider.force_flush()
    kinds = KINDS[:3]
    print("where the time of the guard goes, us by the wall clock (medians; clocks included)")
    print(f"  {'':22}" + "".join(f"{kind:>16}" for kind in kinds))
    for part in PARTS:
        figures = (statistics.median(clock.parts[kind, part]) / 1e3 for kind in kinds)
        print(f"  {part:22}" + "".join(f"{figure:16.1f}" for figure in figures))


def main() -> None:
    rounds = 10 if "--quick" in sys.argv else ROUNDS
    against_nothing(rounds)
    if "--parts" in sys.argv:
        by_part(rounds // 2)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}")
    main()
