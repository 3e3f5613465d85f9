"""Where a contract is tried: a scripted server, a real agent, a guard, and what they wrote."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span

from otel_loopguard import AbortHook, LoopGuardSpanProcessor, Policy
from otel_loopguard.options.kinds import AbortException, BuiltIn
from otel_loopguard.policy import Mode
from otel_loopguard.testing import ModelServer
from tests.frameworks._framework import Framework, Instrument, Job, Tool
from tests.frameworks._surroundings import Around

Labels = Mapping[str, Any]

_MADE_UP = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What frameworks write into names of spans and is another each time."""


class Counts(NamedTuple):
    """What happened in the world, by those who saw it: the server, and the tools themselves."""

    requests: int
    executions: int

    def __sub__(self, earlier: Counts) -> Counts:
        return Counts(self.requests - earlier.requests, self.executions - earlier.executions)


class Outcome(NamedTuple):
    """What the caller of an agent got, and what the run cost."""

    answer: str | None
    error: BaseException | None
    counts: Counts


class Recorder:
    """A server, a provider, and everything that was exported."""

    def __init__(self, server: ModelServer, provider: TracerProvider) -> None:
        self.server = server
        self.provider = provider
        self.calls: list[str] = []
        """The scripts on whose behalf tools were executed, in order."""
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def counts(self, script: str | None = None) -> Counts:
        """Count requests and executions so far: all of them, or those of one script."""
        executions = sum(1 for each in self.calls if script in (None, each))
        return Counts(self.server.count(script), executions)

    def span(self, name: str) -> AbstractContextManager[Span]:
        """Open a span of the application around what follows."""
        return self.provider.get_tracer("application").start_as_current_span(name)

    def tools(self, script: str) -> tuple[Tool, Tool]:
        """Return two tools that note when they are executed."""

        def search(query: str) -> str:
            """Search for a text."""
            self.calls.append(script)
            return f"nothing found for {query}"

        def lookup(query: str) -> str:
            """Look a key up."""
            self.calls.append(script)
            return f"the value of {query}"

        return search, lookup

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The spans that have been exported, in the order of their ends."""
        return self._exporter.get_finished_spans()

    def named(self, *names: str) -> list[ReadableSpan]:
        """Return the exported spans of these names."""
        return [span for span in self.spans if span.name in names]

    def innermost(self, names: Collection[str]) -> list[ReadableSpan]:
        """Return the exported spans of these names that have none of these below them."""
        found = [span for span in self.spans if span.name in names]
        above = {span.parent.span_id for span in found if span.parent}
        return [span for span in found if span.context and span.context.span_id not in above]

    def paths(self) -> list[str]:
        """Return for each exported span the names from its root down to it, sorted."""
        by_id = {span.context.span_id: span for span in self.spans if span.context}
        return sorted(" > ".join(_names(span, by_id)) for span in self.spans)

    def points(self, metric: str) -> list[tuple[Labels, float]]:
        """Return every series of a metric that is not zero; a histogram's value is its sum."""
        return [(labels, value) for labels, value in self.series(metric) if value]

    def series(self, metric: str) -> list[tuple[Labels, float]]:
        """Return every series of a metric, at zero too; a histogram's value is its sum."""
        data = self._reader.get_metrics_data()
        metrics = (
            []
            if data is None
            else [
                each
                for resource in data.resource_metrics
                for scope in resource.scope_metrics
                for each in scope.metrics
                if each.name == metric
            ]
        )
        return [
            (dict(point.attributes or {}), _value(point))
            for each in metrics
            for point in each.data.data_points
        ]


class Scene(Recorder):
    """Agents at work in front of one server, traced by one provider, with or without a guard."""

    def __init__(self, framework: Framework, server: ModelServer, provider: TracerProvider) -> None:
        super().__init__(server, provider)
        self.framework = framework

    def play(
        self,
        mode: str,
        script: str = "endless",
        *,
        tools: Sequence[Tool] | None = None,
        around: Around | None = None,
    ) -> Outcome:
        """Run an agent to its end, inside a block or a span if one is given."""
        if mode in self.framework.awaited:
            return asyncio.run(self.played(mode, script, tools=tools, around=around))
        before, answer, error = self.counts(script), None, None
        try:
            with nullcontext() if around is None else around:
                answer = self.framework.blocking[mode](self._job(script, tools))
        except Exception as caught:  # noqa: BLE001 -- frameworks wrap what stopped them
            error = caught
        return Outcome(answer, error, self.counts(script) - before)

    async def played(
        self,
        mode: str,
        script: str = "endless",
        *,
        tools: Sequence[Tool] | None = None,
        around: Around | None = None,
    ) -> Outcome:
        """Run an agent to its end in the running task, inside a block or a span if one is given."""
        before, answer, error = self.counts(script), None, None
        try:
            async with nullcontext() if around is None else around:
                answer = await self.framework.awaited[mode](self._job(script, tools))
        except asyncio.CancelledError as cancelled:  # the guard's last resort, with no block around
            error = cancelled
        except Exception as caught:  # noqa: BLE001 -- frameworks wrap what stopped them
            error = caught
        return Outcome(answer, error, self.counts(script) - before)

    def play_in_turn(self, mode: str, scripts: Sequence[str]) -> list[Outcome]:
        """Run one agent after another, in the same thread, task and context."""

        async def one_task() -> list[Outcome]:
            return [await self.played(mode, script) for script in scripts]

        if mode in self.framework.awaited:
            return asyncio.run(one_task())
        return [self.play(mode, script) for script in scripts]

    def _job(self, script: str, tools: Sequence[Tool] | None) -> Job:
        return Job(script, self.server.url, self.tools(script) if tools is None else tools)


def _value(point: Any) -> float:
    return point.sum if isinstance(point, HistogramDataPoint) else point.value


def _names(span: ReadableSpan, by_id: Mapping[int, ReadableSpan]) -> list[str]:
    above = None if span.parent is None else by_id.get(span.parent.span_id)
    name = _MADE_UP.sub("...", span.name)
    return [*([] if above is None else _names(above, by_id)), name]


@contextmanager
def traced(instrument: Instrument, *, content: bool) -> Generator[TracerProvider]:
    """Trace a framework by a provider of its own."""
    provider = TracerProvider(shutdown_on_exit=False)
    with instrument(provider, content=content):
        try:
            yield provider
        finally:
            provider.shutdown()


class Workbench(NamedTuple):
    """Makes scenes of one framework in front of one server."""

    framework: Framework
    server: ModelServer

    @contextmanager
    def scene(self, *, content: bool = True) -> Generator[Scene]:
        """Trace the framework's agents, without a guard."""
        with traced(self.framework.instrument, content=content) as provider:
            yield Scene(self.framework, self.server, provider)

    @contextmanager
    def guarded(
        self,
        policy: Policy | None = None,
        *,
        content: bool = True,
        mode: Mode = "enforce",
        abort_hooks: Sequence[AbortHook] = (),
        abort: Sequence[BuiltIn] | None = None,
        abort_exception: AbortException | None = None,
    ) -> Generator[Scene]:
        """Trace the framework's agents with a guard."""
        with self.scene(content=content) as scene:
            scene.provider.add_span_processor(
                LoopGuardSpanProcessor(
                    policy,
                    mode=mode,
                    abort_hooks=abort_hooks,
                    abort=abort,
                    abort_exception=abort_exception,
                    meter_provider=scene.meters,
                )
            )
            yield scene


class Stopped(NamedTuple):
    """A runaway that was stopped with no more than the guard added."""

    scene: Scene
    outcome: Outcome
    at_the_trip: list[Counts]
    """What had happened each time that a hook was called."""
