"""Agents that make every series of the guard: `python -m dashboards.checks.agents`.

The guard is the real one. The agents are their spans alone, made by hand: good ones, one that loops
and is stopped, one that swallows every stop, one that shows nothing of what it does, and one that
never ends. A second service only observes, and has more series than it may keep. Metrics of each
are served for Prometheus to fetch, exemplars included; their ports are printed.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from opentelemetry.sdk.metrics import Counter, MeterProvider
from opentelemetry.sdk.metrics.export import CardinalityLimits
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

from otel_loopguard import AbortRequest, LoopGuardSpanProcessor, RunAborted
from otel_loopguard.dialects import BUILT_IN
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.policy import Mode
from otel_loopguard.prometheus import OpenMetricsExporter
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

POLICY = """\
scope = "conversation"
steer = "{rule}: {subject}, {count} times. Try something else, or finish."
[limits]
max_steps = 2000
[rules.repeated_result]
warn = 3
abort = 5
[usage.price]
input_per_m_usd = 0.3
output_per_m_usd = 1.5
"""
LONG_NAME = "invoice-reconciliation-and-dispute-resolution-emea"
BREAKS = "demo.breaks"
CONVERSATIONS = 1_100
"""More than a guard remembers."""
FEW_SERIES = 40
HOOK_TIMEOUT_S = 0.3
CALLS = {"page_on_call": count(), "drain_queue": count()}


def release_lock(request: AbortRequest) -> None:
    """A hook that does what it should."""


def page_on_call(request: AbortRequest) -> None:
    """A hook that fails now and then."""
    if request.id and next(CALLS["page_on_call"]) % 3 == 0:
        raise ConnectionError("the pager cannot be reached")


def drain_queue(request: AbortRequest) -> None:
    """A hook that takes too long now and then."""
    if request.id and next(CALLS["drain_queue"]) % 4 == 0:
        time.sleep(HOOK_TIMEOUT_S * 3)


def broken(_: SpanRecord) -> Step | None:
    raise LookupError("a dialect that breaks")


class Agents:
    """A guarded service, and what its agents do."""

    def __init__(self, policy: Path, mode: Mode, limits: CardinalityLimits | None = None) -> None:
        self._policy = policy
        self._follow(POLICY)
        resource = Resource.create({"service.name": f"agents-{mode}"})
        self.exporter = OpenMetricsExporter(
            port=0, registry=CollectorRegistry(), cardinality_limits=limits
        )
        meters = MeterProvider([self.exporter], resource=resource)
        self.guard = LoopGuardSpanProcessor(
            policy,
            mode=mode,
            abort_hooks=[release_lock, page_on_call, drain_queue],
            abort=("integration", "gate"),
            meter_provider=meters,
            hook_timeout_s=HOOK_TIMEOUT_S,
            dialects=[
                Dialect(name="broken", read=broken, marks=Marks(attributes=frozenset({BREAKS}))),
                *BUILT_IN,
            ],
        )
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(self.guard)
        self._tracer = provider.get_tracer("agents")
        self._conversations = count()
        self._reloads = count(1)

    def _follow(self, policy: str) -> None:
        self._policy.write_text(policy, encoding="utf-8")

    @contextmanager
    def run(self, agent: str, conversation: str = "") -> Generator[None]:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        if conversation:
            attributes["gen_ai.conversation.id"] = conversation
        with self._tracer.start_as_current_span(f"invoke_agent {agent}", attributes=attributes):
            yield

    def ask(self, *, last: bool = False, obeys: bool = True, tokens: int = 2000) -> None:
        """A model call; one that obeys leaves with `RunAborted` when its run has tripped."""
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        with self._tracer.start_as_current_span("chat m", attributes=attributes) as span:
            if obeys:
                admitted = self.guard.admit()
                if admitted is not None:
                    admitted.over(failed=False)
                self.guard.checkpoints.hint()
            part = {"type": "text", "content": f"done {next(self._conversations)}"}
            turn = {"role": "assistant", "parts": [part]}
            span.set_attribute("gen_ai.output.messages", json.dumps([turn]))
            span.set_attribute("gen_ai.response.finish_reasons", ["stop" if last else "tool_calls"])
            span.set_attribute("gen_ai.usage.input_tokens", tokens)
            span.set_attribute("gen_ai.usage.output_tokens", tokens // 10)

    def call(self, tool: str, given: object, result: object) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps(given),
        }
        with self._tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes) as s:
            s.set_attribute("gen_ai.tool.call.result", json.dumps(result))

    def good(self, agent: str) -> None:
        with self.run(agent):
            for turn in range(random.randint(2, 7)):  # noqa: S311 -- no secret
                self.ask(tokens=1500 * (turn + 1))
                self.call("search_tickets", {"page": turn}, f"ticket {time.time_ns()}")
                time.sleep(random.uniform(0.02, 0.2))  # noqa: S311
            self.ask(last=True)

    def looping(self, agent: str, tool: str, *, times: int = 40, obeys: bool = True) -> None:
        with self.run(agent):
            for _ in range(times):
                self.ask(obeys=obeys)
                self.call(tool, {"query": "status of order 7"}, "nothing found")
                time.sleep(0.3)
            self.ask(last=True, obeys=obeys)

    def erring(self, agent: str) -> None:
        with self.run(agent):
            self.ask()
            self.call("convert_currency", {"to": "EUR"}, "ok")
            raise TimeoutError("the provider does not answer")

    def blind(self, agent: str) -> None:
        """One whose spans say what they are, and nothing else."""
        with self.run(agent):
            for name, operation in (("chat m", "chat"), ("execute_tool import", "execute_tool")):
                attributes = {"gen_ai.operation.name": operation}
                with self._tracer.start_as_current_span(name, attributes=attributes):
                    pass

    def endless(self, agent: str) -> None:
        """A run that goes on as long as the process, within its limits."""
        with self.run(agent):
            for turn in count():
                self.ask(tokens=9000 + 500 * turn)
                self.call("fetch_page", {"page": turn}, f"page {turn}")
                time.sleep(20)

    def breaking(self) -> None:
        with self._tracer.start_as_current_span("odd", attributes={BREAKS: True}):
            pass

    def short(self) -> None:
        """A run of a conversation of its own."""
        with self.run("chat-widget", f"conversation-{next(self._conversations)}"):
            self.ask(last=True, tokens=300)

    def reload(self) -> None:
        wrong = next(self._reloads) % 2
        self._follow("[limits]\nmax_stps = 60\n" if wrong else f"{POLICY}# anew\n")


def work(agents: Agents) -> list[tuple[float, Callable[[], object]]]:
    """What is done, and every how many seconds."""
    return [
        (0.7, lambda: agents.good("support-triage")),
        (1.9, lambda: agents.good("release-notes-writer")),
        (35, lambda: agents.looping("web-researcher", "web_search")),
        (80, lambda: agents.looping(LONG_NAME, "lookup_invoice_by_purchase_order")),
        (130, lambda: agents.looping("code-fixer", "run_tests", times=12, obeys=False)),
        (1e6, lambda: agents.looping("code-fixer", "apply_patch", times=1_000_000, obeys=False)),
        (25, lambda: agents.erring("web-researcher")),
        (20, lambda: agents.blind("legacy-importer")),
        (0.5, agents.short),
        (100, agents.breaking),
        (50, agents.reload),
        (1e6, lambda: agents.endless("nightly-crawler")),
    ]


def every(seconds: float, do: Callable[[], object]) -> None:
    while True:
        with suppress(RunAborted, TimeoutError):
            do()
        time.sleep(seconds * random.uniform(0.8, 1.2))  # noqa: S311 -- no secret


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3600, help="how long they work")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # what goes wrong here is meant to
    with TemporaryDirectory(prefix="loopguard-agents-") as made:
        agents = Agents(Path(made) / "enforced.toml", "enforce")
        observed = Agents(Path(made) / "observed.toml", "observe", {Counter: FEW_SERIES})
        print(agents.exporter.port, observed.exporter.port, flush=True)
        for each in [*work(agents), (5.0, lambda: observed.good("translator"))]:
            threading.Thread(target=every, args=each, daemon=True).start()
        time.sleep(5)
        # Later than the first fetch, so that it is seen to grow.
        for _ in range(CONVERSATIONS):
            agents.short()
        time.sleep(options.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
