"""The vocabulary of tables: what is asked at once, and how wide its columns are."""

from __future__ import annotations

from collections.abc import Mapping

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import prometheus, table
from grafana_foundation_sdk.models import prometheus as prometheus_models
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue

from dashboards.generator.panels import CALM, CURVE_HEIGHT, METRICS, Steps, thresholds

NARROWEST, PER_CHARACTER, PADDING = 80, 8, 24
"""Pixels of a column of numbers."""
SHORT = {"Action": 90, "Mode": 100, "Rule": 180, "Step": 70, "Version": 100}
"""Pixels of a column of words that are known."""


def at_once(expression: str, *, ref: str = "A") -> prometheus.Dataquery:
    """A query for a table: its value now, with its labels as columns."""
    return (
        prometheus.Dataquery()
        .datasource(METRICS)
        .expr(expression)
        .ref_id(ref)
        .instant()
        .format(prometheus_models.PromQueryFormat.TABLE)
    )


def rows(
    title: str,
    description: str,
    columns: Mapping[str, str],
    *queries: prometheus.Dataquery,
    units: Mapping[str, str] | None = None,
    steps: Mapping[str, Steps] | None = None,
    links: Mapping[str, str] | None = None,
    sort: str = "",
    unit: str = "short",
    width: int = 12,
    height: int = CURVE_HEIGHT,
) -> table.Panel:
    """A table with a row for each set of labels; queries become columns beside each other.

    `columns` are labels, and `Value` or `Value #A`, with their headings; all else is left out. By
    heading: `units` where it is not `unit`, `steps` from which value on which colour, and `links`
    where a click on a cell leads. Numbers get as much room as their heading, names what is left.
    The last column is the one that is sorted by, if `sort` names no other.
    """
    numbers = [heading for name, heading in columns.items() if name.startswith("Value")]
    made = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .span(width)
        .height(height)
        .no_value("none")
        .thresholds(thresholds(CALM))
    )
    for each in queries:
        made = made.with_target(each)
    last = [sort] if sort else list(columns.values())[-1:]
    made = made.sort_by(
        [
            common_builders.TableSortByFieldState().display_name(each).desc(desc=True)
            for each in last
        ]
    )
    if len(queries) > 1:
        made = made.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    # Listed, so that what a Prometheus or a collector adds to its series is no column.
    kept = DataTransformerConfig(
        id_val="filterFieldsByName", options={"include": {"names": list(columns)}}
    )
    ordered = DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {},
            "indexByName": {name: place for place, name in enumerate(columns)},
            "renameByName": dict(columns),
        },
    )
    made = made.with_transformation(kept).with_transformation(ordered)
    for heading in columns.values():
        properties = _column(heading, units or {}, steps or {}, links or {})
        if heading in numbers:
            wide = max(NARROWEST, PER_CHARACTER * len(heading) + PADDING)
            properties.append(DynamicConfigValue(id_val="custom.width", value=wide))
        elif heading in SHORT:
            properties.append(DynamicConfigValue(id_val="custom.width", value=SHORT[heading]))
        if properties:
            made = made.override_by_name(heading, properties)
    return made


def _column(
    heading: str,
    units: Mapping[str, str],
    steps: Mapping[str, Steps],
    links: Mapping[str, str],
) -> list[DynamicConfigValue]:
    found: list[DynamicConfigValue] = []
    if heading in units:
        found.append(DynamicConfigValue(id_val="unit", value=units[heading]))
    if heading in steps:
        parts = [{"value": value, "color": colour} for value, colour in steps[heading]]
        found += [
            DynamicConfigValue(id_val="thresholds", value={"mode": "absolute", "steps": parts}),
            DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
        ]
    if heading in links:
        to = {"title": "Open traces", "url": links[heading], "targetBlank": True}
        found.append(DynamicConfigValue(id_val="links", value=[to]))
    return found
