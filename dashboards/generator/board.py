"""What all boards share: variables, annotations, links, ids and the JSON text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from grafana_foundation_sdk.builders import dashboard, prometheus
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    Panel,
    RowPanel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.generator.panels import METRICS, ORANGE, RED, link
from dashboards.generator.promql import STEP, grew, of, some, total
from scripts.alert_rules import page_of

TAG = "loopguard"
# The page of this project, as the links of the rules have it; see scripts/grafana_alerts.py.
RUNBOOKS = page_of("index")
TRIPPED = "{ span.loopguard.tripped = true }"
"""TraceQL: runs that were tripped."""
Section: TypeAlias = tuple[str, Sequence[Builder[Panel]]]
"""A row's title and its panels; they flow from left to right."""


def board(
    uid: str, title: str, description: str, sections: Sequence[Section], *, by_rule: bool = False
) -> Dashboard:
    """A whole board; with a variable for the rule where its panels are about rules."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .tags([TAG, "opentelemetry", "genai"])
        .description(description)
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Metrics").type("prometheus")
        )
        .with_variable(dashboard.DatasourceVariable("traces").label("Traces").type("tempo"))
        .with_variable(_choice("job", "Service", "label_values(loopguard_info, job)", ".+"))
        # Runs of an agent without a name have no such label: `.*` shows them too.
        .with_variable(
            _choice("agent", "Agent", _values("loopguard_violations_total", "gen_ai_agent_name"))
        )
    )
    if by_rule:
        made = made.with_variable(
            _choice("rule", "Rule", _values("loopguard_violations_total", "loopguard_rule"))
        )
    made = (
        made.with_variable(
            dashboard.ConstantVariable("runbooks").label("Where the runbooks are").value(RUNBOOKS)
        )
        .annotation(_trips())
        .annotation(_stops())
        .link(
            dashboard.DashboardLink("Loopguard")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(include_vars=True)
            .keep_time(keep_time=True)
        )
        .link(link("Traces of tripped runs", explored(TRIPPED)))
        .link(link("Runbooks", "${runbooks}"))
    )
    for name, panels in sections:
        made = made.with_row(dashboard.Row(name))
        for panel in panels:
            made = made.with_panel(panel)
    return numbered(made.build())


def numbered(made: Dashboard) -> Dashboard:
    """With an id for each panel, which the SDK leaves out: links to one panel need it.

    Ids follow the order of the panels; a new one at the end of its row moves those after it, so
    rows have a hundred each.
    """
    row = place = 0
    for panel in made.panels or []:
        if isinstance(panel, RowPanel):
            row, place = row + 100, 0
        panel.id_val = row + place
        place += 1
    return made


def encoded(made: Dashboard) -> str:
    text: str = JSONEncoder(sort_keys=True, indent=2).encode(made)
    return text + "\n"


def explored(traceql: str) -> str:
    """The address of Grafana's Explore with a search for traces, in the time that is shown."""
    pane = {
        "datasource": "${traces}",
        "queries": [
            {
                "refId": "A",
                "datasource": {"type": "tempo", "uid": "${traces}"},
                "queryType": "traceql",
                "query": traceql,
            }
        ],
        "range": {"from": "${__from}", "to": "${__to}"},
    }
    # Not percent-encoded: Grafana puts its variables in, and encodes the rest, when it is clicked.
    return f"/explore?schemaVersion=1&panes={json.dumps({'a': pane}, separators=(',', ':'))}"


def _choice(name: str, label: str, asked: str, every: str = ".*") -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(METRICS)
        .query(asked)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(every)
        .current(VariableOption(text="All", value="$__all", selected=True))
    )


def _values(metric: str, label: str) -> str:
    return f'label_values({metric}{{job=~"$job"}}, {label})'


def _trips() -> dashboard.AnnotationQuery:
    tripped = of("loopguard_violations_total", 'loopguard_action="abort"')
    by = ("gen_ai_agent_name", "loopguard_rule")
    return _annotation("Trips", tripped, by, ORANGE, "{{gen_ai_agent_name}}: {{loopguard_rule}}")


def _stops() -> dashboard.AnnotationQuery:
    failed = of("loopguard_aborts_total", 'loopguard_abort_result!="ok"', agent=False)
    by = ("loopguard_abort_hook", "loopguard_abort_result")
    text = "{{loopguard_abort_hook}}: {{loopguard_abort_result}}"
    return _annotation("Failed stops", failed, by, RED, text)


def _annotation(
    name: str, series: str, by: Sequence[str], colour: str, text: str
) -> dashboard.AnnotationQuery:
    asked = (
        prometheus.Dataquery()
        .expr(some(total(grew(series, STEP), *by)))
        .ref_id("Anno")
        .interval("60s")
        .range()
    )
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(DataSourceRef(type_val="prometheus", uid="${datasource}"))
        .enable(enable=True)
        .icon_color(colour)
        .target(asked)
        .title_format(name)
        .text_format(text)
    )
