"""Tripped traces: the runs themselves, found by TraceQL in Tempo. Nobody has run these queries."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table, tempo, timeseries
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.tempo import SearchTableType

from dashboards.generator.board import TRIPPED, board
from dashboards.generator.panels import bars
from dashboards.generator.tables import rows

TRACES = DataSourceRef(type_val="tempo", uid="${traces}")
NOT_RUN = "NOT RUN: no Tempo has been asked this."
# The run's topmost span need not name the agent, which the event of the trip does. `All` is `.*`: a
# name that is not there does not match that, so the name of the event, which always is, is held
# against it as well.
OF_AGENT = (
    '{ event:name = "loopguard.violation" && event.loopguard.action = "abort"'
    ' && (event.gen_ai.agent.name =~ "${agent:pipe}" || event:name =~ "${agent:pipe}") }'
)
SHOWN = (
    "select(span.gen_ai.agent.name, span.loopguard.rule, span.loopguard.run.status, "
    "span.loopguard.run.steps, span.loopguard.run.steps_after_trip)"
)
LIMIT = 50


def tripped_traces() -> Dashboard:
    return board(
        "loopguard-traces",
        "Loopguard / Tripped traces (not run)",
        "The traces of runs that tripped, in Tempo. Nobody has run these queries yet.",
        [("Traces in Tempo", [_tripped(), _went_on(), _violations()])],
    )


def _tripped() -> table.Panel:
    return _found(
        "Tripped runs",
        "The latest runs that tripped, and the spans with the event loopguard.violation: read it.",
        f"{TRIPPED} && {OF_AGENT} | {SHOWN}",
    )


def _went_on() -> table.Panel:
    return _found(
        "Went on after the trip",
        "Runs in which steps happened after the trip: what the stop did not reach.",
        f"{{ span.loopguard.run.steps_after_trip > 0 }} && {OF_AGENT} | {SHOWN}",
    )


def _violations() -> timeseries.Panel:
    asked = '{ event:name = "loopguard.violation" } | count_over_time() by (event.loopguard.rule)'
    return (
        bars(
            "Violations in spans",
            f"By rule, by TraceQL metrics, which Tempo has to be told to compute. {NOT_RUN}",
            width=24,
        )
        .datasource(TRACES)
        .with_target(_search(asked))
    )


def _found(title: str, description: str, traceql: str) -> table.Panel:
    return (
        rows(title, f"{description} {NOT_RUN}", {}, width=24)
        .transformations([])
        .datasource(TRACES)
        .with_target(_search(traceql).table_type(SearchTableType.SPANS))
    )


def _search(traceql: str) -> tempo.Dataquery:
    asked = tempo.Dataquery().ref_id("A").datasource(TRACES).query_type("traceql")
    return asked.query(traceql).limit(LIMIT)
