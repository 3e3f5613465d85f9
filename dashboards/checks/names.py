"""The series that the boards may ask for, as Prometheus calls them, with their labels.

They come from the registry of what the guard writes. Names are those of the default translation:
dots become underscores, units and `_total` are added.
"""

from __future__ import annotations

from collections.abc import Mapping

from scripts.telemetry_registry import Group, read

UNITS = {"s": "_seconds"}
"""What a unit adds to a name; one in braces adds nothing."""
PARTS_OF_HISTOGRAM = ("bucket", "count", "sum")


def prometheus_name(group: Group) -> str:
    """The name of a metric, without what a histogram's parts add to it."""
    total = "_total" if group.instrument == "counter" else ""
    return f"{prometheus_label(group.metric_name)}{UNITS.get(group.unit, '')}{total}"


def prometheus_label(name: str) -> str:
    return name.replace(".", "_")


def series_of(group: Group) -> dict[str, frozenset[str]]:
    """The series of a metric, with the labels that are its own."""
    name = prometheus_name(group)
    labels = frozenset(prometheus_label(each.name) for each in group.attributes)
    if group.instrument != "histogram":
        return {name: labels}
    return {
        f"{name}_{part}": labels | frozenset(("le",) if part == "bucket" else ())
        for part in PARTS_OF_HISTOGRAM
    }


METRICS = read().of_type("metric")
COLLECTOR: Mapping[str, frozenset[str]] = {
    "loopguard_traces_events_total": frozenset(
        ("loopguard_rule", "loopguard_action", "gen_ai_agent_name", "gen_ai_tool_name")
    ),
}
"""Counters that a collector makes from spans."""
SERIES: Mapping[str, frozenset[str]] = {
    name: labels for group in METRICS for name, labels in series_of(group).items()
} | dict(COLLECTOR)
GROWING = frozenset(SERIES) - {
    prometheus_name(group) for group in METRICS if group.instrument in ("gauge", "updowncounter")
}
"""Series that mean something only by how much they grow."""
EVERYWHERE = frozenset({"job", "instance", "otel_metric_overflow", "__name__"})
"""Labels that any series may have."""
EXEMPLARS = frozenset(
    (
        "loopguard_violations_total",
        "loopguard_violations_by_tool_total",
        "loopguard_traces_events_total",
    )
)
"""Series whose exemplars are shown: few points, each of which somebody wants to open."""
