"""From a looping agent to a page, over real parts: agent, collector, Prometheus, Alertmanager.

The alert rules are the shipped ones, sixty times as fast: see `scripts/stack/rules.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from scripts.stack.exported import Span, exported, violations
from scripts.stack.pages import Page
from scripts.stack.programs import Program
from scripts.stack.prometheus import Exemplar
from scripts.stack.scenarios import Runaway, looping_agent, runaway_agent
from scripts.stack.waiting import eventually
from scripts.stack.whole import Stack, running_stack

# The first test waits for the stack, for a framework to start, and for two of its agents.
pytestmark = pytest.mark.timeout(600)

RUNS = 3
STARTS_S = 90
"""A framework and its instrumentation take seconds to import, more so on a busy machine."""
FOLLOWS_S = 45


class Scene(NamedTuple):
    """All that runs."""

    stack: Stack
    scout: Program
    """Loops with no line of code for its guard, which stops each of its runs."""
    runaway: Runaway
    """Loops, and whoever could stop it is down."""

    def page(self, status: str, within_s: float, **labels: str) -> Page:
        """The first page of an alert; fails with what there is instead."""

        def find() -> Page | None:
            pages = self.stack.pager.pages(**labels)
            return next((page for page in pages if page.status == status), None)

        return eventually(
            f"a page that {labels} is {status}", find, within_s=within_s, unless=self.stack.fault
        )

    def trip(self, agent: str) -> Exemplar:
        """The first exemplar of an agent's trips."""
        selector = f'{{loopguard_action="abort",gen_ai_agent_name="{agent}"}}'

        def find() -> list[Exemplar]:
            found = self.stack.prometheus.exemplars(f"loopguard_violations_total{selector}")
            return [exemplar for series in found for exemplar in series.exemplars]

        found = eventually(
            f"an exemplar of a trip of {agent}", find, within_s=STARTS_S, unless=self.stack.fault
        )
        return min(found, key=lambda exemplar: exemplar.timestamp)

    def traces(self, *wanted: str) -> list[Span]:
        """What the collector has exported: all runs of scout with their trips, and these spans."""

        def find() -> list[Span] | None:
            spans = exported(self.stack.gateway.exported)
            trips = violations(spans, loopguard__action="abort")
            runs = {span.trace_id for span, _ in trips if span.service == "scout"}
            there = {span.span_id for span in spans}
            return spans if len(runs) >= RUNS and there.issuperset(wanted) else None

        return eventually(
            f"traces of {RUNS} trips of scout, with the spans {wanted}",
            find,
            within_s=STARTS_S,
            unless=self.stack.fault,
        )

    def began(self, state: str, **labels: str) -> float:
        """When an alert was first in a state: Prometheus writes down each evaluation's."""
        said = ",".join(f'{name}="{text}"' for name, text in labels.items())
        alerts = f'ALERTS{{alertstate="{state}",{said}}}'
        [first] = self.stack.prometheus.query(f"min_over_time(timestamp({alerts})[10m:1s])")
        return first.number


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    folder = tmp_path_factory.mktemp("stack")
    with ExitStack() as running:
        stack = running.enter_context(running_stack(folder, hurry=True))
        scout = running.enter_context(looping_agent(stack, runs=RUNS, pause_s=0.5))
        runaway = running.enter_context(runaway_agent(stack))
        yield Scene(stack, scout, runaway)
        sys.stdout.write(stack.logs())  # shown where a test has failed


def test_a_trip_is_counted_and_its_exemplar_leads_to_its_trace(scene: Scene) -> None:
    exemplar = scene.trip("scout")
    assert scene.scout.ends(STARTS_S) == 0
    loop = 'loopguard_violations_total{gen_ai_agent_name="scout",loopguard_action="abort"}'

    def counted() -> bool:
        return scene.stack.prometheus.total(loop) == RUNS

    eventually(f"{RUNS} trips of scout", counted, within_s=FOLLOWS_S, unless=scene.stack.fault)
    spans = scene.traces(exemplar.labels["span_id"])
    trace = [span for span in spans if span.trace_id == exemplar.trace_id]
    assert {span.service for span in trace} == {"scout"}
    assert exemplar.labels["span_id"] in {span.span_id for span in trace}
    found = violations(spans, loopguard__action="abort")
    assert exemplar.trace_id in {span.trace_id for span, _ in found}
    assert len({span.trace_id for span, _ in found if span.service == "scout"}) == RUNS


def test_no_content_has_left_the_collector(scene: Scene) -> None:
    spans = scene.traces()
    assert b"nothing found for" not in scene.stack.gateway.exported.read_bytes()
    hashes = {
        span.attributes.get("loopguard.result.hash")
        for span in spans
        if span.attributes.get("gen_ai.tool.name") == "search" and span.service == "scout"
    }
    assert len(hashes) == 1
    assert None not in hashes


def test_several_trips_alike_page_and_resolve_when_the_runs_were_stopped(scene: Scene) -> None:
    burst = {"alertname": "LoopguardViolationBurst", "gen_ai_agent_name": "ranger"}
    # Five trips within 15 s: for ever, since the first runs are slower than those after them.
    with looping_agent(scene.stack, runs=100_000, pause_s=0.2, service="ranger"):
        paged = scene.page("firing", STARTS_S, **burst)
    assert (paged.labels["severity"], paged.labels["job"]) == ("warning", "ranger")
    scene.page("resolved", FOLLOWS_S, **burst)


def test_a_stop_that_failed_pages_at_once(scene: Scene) -> None:
    trip = scene.trip("runaway")
    failed = {"alertname": "LoopguardAbortFailed", "job": "runaway"}
    paged = scene.page("firing", FOLLOWS_S, **failed)
    assert paged.labels["severity"] == "critical"
    assert paged.labels["loopguard_abort_result"] == "failed"
    assert paged.labels["loopguard_abort_hook"] == "webhook(127.0.0.1)"
    sys.stdout.write(f"failed stop: {paged.at - trip.timestamp:.1f} s from trip to page\n")
    assert paged.at - trip.timestamp < FOLLOWS_S


def test_a_runaway_that_goes_on_pages_and_its_stop_resolves_it(scene: Scene) -> None:
    trip = scene.trip("runaway")
    # Of the two windows of this alert the shorter one.
    runaway = {"alertname": "LoopguardRunawayContinues", "job": "runaway", "window": "5m"}
    paged = scene.page("firing", FOLLOWS_S, **runaway)
    assert paged.labels["severity"] == "critical"
    assert scene.began("pending", **runaway) < scene.began("firing", **runaway)
    assert scene.runaway.program.exit_code is None
    sys.stdout.write(f"runaway: {paged.at - trip.timestamp:.1f} s from trip to page\n")

    scene.runaway.service.state = "up"
    assert scene.runaway.program.ends(FOLLOWS_S) == 0
    assert scene.page("resolved", FOLLOWS_S, **runaway).fingerprint == paged.fingerprint
    tripped = 'loopguard_runs_total{job="runaway",loopguard_tripped="true"}'
    assert scene.stack.prometheus.total(tripped) == 1
