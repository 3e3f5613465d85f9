"""The vocabulary of panels: a tile, curves, bars, a heatmap, the alerts that fire.

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
    timeseries,
)
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import prometheus as prometheus_models
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
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
