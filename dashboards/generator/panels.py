"""The vocabulary of panels: a tile, curves, bars, a table, a heatmap, the alerts that fire.

Few colours, each with one meaning: red wants a person, orange a look, green is a stop that worked,
blue and the palette mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import (
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import prometheus as prometheus_models
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)

GREEN, ORANGE, RED, BLUE, NEUTRAL = "green", "orange", "red", "blue", "text"
METRICS = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
Steps: TypeAlias = tuple[tuple[float | None, str], ...]
"""From which value on which colour; `None` is the lowest."""
CALM: Steps = ((None, NEUTRAL),)
ANY_IS_BAD: Steps = ((None, GREEN), (1, RED))
ANY_IS_ODD: Steps = ((None, GREEN), (1, ORANGE))
TILE_HEIGHT = 4
CURVE_HEIGHT = 9
NARROWEST, PER_CHARACTER, PADDING = 80, 8, 24
"""Pixels of a column of numbers."""
SHORT = {"Action": 90, "Mode": 100, "Rule": 180, "Step": 70, "Version": 100}
"""Pixels of a column of words that are known."""


def query(
    expression: str, legend: str = "", *, ref: str = "A", exemplars: bool = False
) -> prometheus.Dataquery:
    made = (
        prometheus.Dataquery()
        .datasource(METRICS)
        .expr(expression)
        .legend_format(legend)
        .ref_id(ref)
        .range()
    )
    return made.exemplar(exemplar=True) if exemplars else made


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


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=value, color=colour) for value, colour in steps])
    )


def tile(
    title: str,
    description: str,
    expression: str,
    *,
    unit: str = "short",
    steps: Steps = CALM,
    width: int = 4,
) -> stat.Panel:
    """One number that answers at a glance."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .span(width)
        .height(TILE_HEIGHT)
        .with_target(query(expression).instant())
        .thresholds(thresholds(steps))
        .no_value("0")
        .text_mode(common.BigValueTextMode.VALUE)
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def curves(
    title: str,
    description: str,
    *queries: prometheus.Dataquery,
    unit: str = "short",
    width: int = 12,
    colours: Mapping[str, str] | None = None,
) -> timeseries.Panel:
    made = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .min(0)
        .span(width)
        .height(CURVE_HEIGHT)
        .line_width(2)
        .fill_opacity(10)
        .show_points(common.VisibilityMode.AUTO)
        .legend(
            common_builders.VizLegendOptions()
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
            .show_legend(show_legend=True)
        )
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
    )
    for each in queries:
        made = made.with_target(each)
    for name, colour in (colours or {}).items():
        made = made.override_by_name(name, [fixed(colour)])
    return made


def bars(
    title: str,
    description: str,
    *queries: prometheus.Dataquery,
    unit: str = "none",
    width: int = 12,
    colours: Mapping[str, str] | None = None,
) -> timeseries.Panel:
    """How often something rare happened: stacked, since each is counted in one bar."""
    return (
        curves(title, description, *queries, unit=unit, width=width, colours=colours)
        .draw_style(common.GraphDrawStyle.BARS)
        .fill_opacity(70)
        .line_width(0)
        .decimals(0)
        .no_value("None in this time")
        .stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
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


def heat(
    title: str, description: str, expression: str, *, unit: str = "short", width: int = 12
) -> heatmap.Panel:
    asked = query(expression, "{{le}}").format(prometheus_models.PromQueryFormat.HEATMAP)
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .span(width)
        .height(CURVE_HEIGHT)
        .with_target(asked)
    )


def alerts(title: str, description: str, *, width: int = 12) -> dashboard.Panel:
    """The guard's alerts; the SDK has no builder for this panel."""
    states = {"firing": True, "pending": True, "normal": False, "noData": False, "error": True}
    return (
        dashboard.Panel()
        .type("alertlist")
        .title(title)
        .description(description)
        .datasource(METRICS)
        .span(width)
        .height(CURVE_HEIGHT)
        .options(
            {
                "alertInstanceLabelFilter": '{alertname=~"Loopguard.+"}',
                "datasource": "${datasource}",
                "groupMode": "default",
                "maxItems": 20,
                "sortOrder": 3,
                "stateFilter": states,
                "viewMode": "list",
            }
        )
    )


def fixed(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue(
        id_val="color", value={"mode": FieldColorModeId.FIXED.value, "fixedColor": colour}
    )


def link(title: str, address: str, *, same_tab: bool = False) -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink(title)
        .type(DashboardLinkType.LINK)
        .url(address)
        .target_blank(not same_tab)
    )
