"""The run that trips everything: no metric of the registry and no alert is without data."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Mapping
from typing import NamedTuple

import pytest
import yaml

from dashboards.checks.documents import boards
from dashboards.checks.executed import Prometheus as Shown
from dashboards.checks.executed import empty
from scripts.stack.rules import shipped
from scripts.stack.scenarios import everything
from scripts.stack.whole import Stack, running_stack
from scripts.stack.witness import Witness, witness
from scripts.telemetry_registry import read
from scripts.telemetry_tables import prometheus_name

# The first test waits for all of it: on a busy machine far longer than on a quiet one.
pytestmark = pytest.mark.timeout(600)
AT_MOST_S = 400
"""Until something is said to be missing; leaves time to start and to stop the stack."""
LOOK_S = 2

METRICS = [prometheus_name(group) for group in read().of_type("metric")]
IN_PARTICULAR = [
    *(
        f'loopguard_aborts_total{{loopguard_abort_result="{r}"}}'
        for r in ("ok", "failed", "timeout")
    ),
    *(
        f'loopguard_evictions_total{{loopguard_store="{s}"}}'
        for s in ("spans", "runs", "ids", "conversations")
    ),
    *(
        f'loopguard_gaps_total{{loopguard_gap="{g}"}}'
        for g in ("arguments", "result", "usage", "requested_calls", "tool_span")
    ),
    *(
        f'loopguard_policy_reloads_total{{loopguard_policy_reload_result="{r}"}}'
        for r in ("ok", "failed")
    ),
    *(f'loopguard_info{{loopguard_mode="{m}"}}' for m in ("observe", "enforce")),
    'loopguard_run_active{loopguard_tripped="true"}',
    'loopguard_violations_total{otel_metric_overflow="true"}',
    'loopguard_violations_total{loopguard_action="warn"}',
    'loopguard_violations_by_tool_total{gen_ai_tool_name="_OTHER"}',
    'loopguard_cost_total{job="acted-rounds"}',  # by the prices of models that are known
    "loopguard_traces_events_total",  # counted by the collector
]
"""What has to be more than 0, besides each metric as a whole."""


class Rule(NamedTuple):
    """An alert of the shipped rules, and the labels that are its own."""

    alert: str
    labels: Mapping[str, str]

    def __str__(self) -> str:
        told = [self.labels[name] for name in sorted(self.labels) if name != "topic"]
        return "-".join([self.alert, *told])


def rules() -> list[Rule]:
    return [
        Rule(rule["alert"], rule["labels"])
        for path in shipped()
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]


class Run(NamedTuple):
    """The run, after everything has been tripped or the time is up."""

    stack: Stack
    began: float
    missing: list[str | Rule]
    """Metrics, series and alerts that were never seen."""


def never_seen(wanted: list[str | Rule], stack: Stack, seen: Witness) -> list[str | Rule]:
    return [
        each
        for each in wanted
        if not (
            stack.prometheus.query(f"{each} > 0")
            if isinstance(each, str)
            else seen.sights(alertname=each.alert, **each.labels)
        )
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Generator[Run]:
    folder = tmp_path_factory.mktemp("everything")
    with (
        running_stack(folder, hurry=True) as stack,
        witness(stack.prometheus) as seen,
        everything(stack) as story,
    ):
        began = time.time()
        missing = [*METRICS, *IN_PARTICULAR, *rules()]
        while missing and time.time() - began < AT_MOST_S and not stack.fault():
            story.go_on()
            time.sleep(LOOK_S)
            missing = never_seen(missing, stack, seen)
        sys.stdout.write(f"{time.time() - began:.0f} s, missing {[*map(str, missing)]}\n")
        yield Run(stack, began, missing)
        sys.stdout.write(stack.logs())  # shown where a test has failed


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_data(run: Run, name: str) -> None:
    assert name not in run.missing


@pytest.mark.parametrize("selector", IN_PARTICULAR)
def test_so_does_what_is_rare(run: Run, selector: str) -> None:
    assert selector not in run.missing


@pytest.mark.parametrize("rule", rules(), ids=str)
def test_every_alert_is_pending_at_least(run: Run, rule: Rule) -> None:
    assert rule not in run.missing


@pytest.mark.parametrize("name", sorted(boards()))
def test_no_query_of_a_board_is_without_data(run: Run, name: str) -> None:
    now = time.time()
    shown = Shown(run.stack.prometheus.url, run.began, now, rate_interval_s=10)
    assert list(empty(boards()[name], shown)) == []


def test_every_rule_can_be_evaluated(run: Run) -> None:
    loaded = run.stack.prometheus.rules()
    assert len(loaded) > len(rules())
    assert [(rule.name, rule.last_error) for rule in loaded if rule.health != "ok"] == []
