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

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from agent_spans import RUNS, Clock, play
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_loopguard import LoopGuardSpanProcessor, processor, tracker
from otel_loopguard.guard import LoopGuard
from otel_loopguard.run_finder import RunFinder

ROUNDS = 60
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
