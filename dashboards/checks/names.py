"""The series that the boards may ask for, as Prometheus calls them, with their labels.

Names are those of the default translation: dots become underscores, units and `_total` are added.
"""

from __future__ import annotations

from collections.abc import Mapping

AGENT, RULE = "gen_ai_agent_name", "loopguard_rule"
COUNTERS: Mapping[str, frozenset[str]] = {
    "loopguard_violations": frozenset({RULE, "loopguard_action", AGENT}),
    "loopguard_violations_by_tool": frozenset({RULE, "loopguard_action", "gen_ai_tool_name"}),
    "loopguard_runs": frozenset({"loopguard_run_status", "loopguard_tripped", AGENT}),
    "loopguard_run_steps_after_trip": frozenset({AGENT}),
    "loopguard_abort_requests": frozenset({"loopguard_abort_hook"}),
    "loopguard_aborts": frozenset({"loopguard_abort_hook", "loopguard_abort_result"}),
    "loopguard_gaps": frozenset({"loopguard_gap", "loopguard_step_kind", AGENT}),
    "loopguard_hints": frozenset({RULE, AGENT}),
    "loopguard_errors": frozenset({"error_type"}),
    "loopguard_policy_reloads": frozenset({"loopguard_policy_reload_result"}),
    "loopguard_evictions": frozenset({"loopguard_store"}),
    "loopguard_steps": frozenset({"loopguard_step_kind", AGENT}),
    "loopguard_token_usage": frozenset({"gen_ai_token_type", AGENT}),
    "loopguard_cost": frozenset({AGENT}),
}
GAUGES: Mapping[str, frozenset[str]] = {
    "loopguard_run_active": frozenset({"loopguard_tripped", AGENT}),
    "loopguard_info": frozenset({"loopguard_version", "loopguard_mode"}),
    "loopguard_run_age_max_seconds": frozenset({AGENT}),
    "loopguard_run_steps_max": frozenset({AGENT}),
    "loopguard_run_cost_max": frozenset({AGENT}),
}
HISTOGRAMS: Mapping[str, frozenset[str]] = {
    "loopguard_run_steps": frozenset({AGENT}),
    "loopguard_run_duration_seconds": frozenset({AGENT}),
    "loopguard_run_token_usage": frozenset({"gen_ai_token_type", AGENT}),
    "loopguard_run_cost": frozenset({AGENT}),
    "loopguard_run_duration_after_trip_seconds": frozenset({AGENT}),
    "loopguard_abort_duration_seconds": frozenset({"loopguard_abort_hook"}),
    "loopguard_guard_duration_seconds": frozenset({"loopguard_callback"}),
}
COLLECTOR: Mapping[str, frozenset[str]] = {
    "loopguard_traces_events": frozenset({"service_name", RULE, "loopguard_action"}),
}
"""Counters that a collector makes from spans."""
EVERYWHERE = frozenset({"job", "instance", "otel_metric_overflow", "__name__"})
"""Labels that any series may have."""
SERIES: Mapping[str, frozenset[str]] = {
    **GAUGES,
    **{f"{name}_total": labels for name, labels in {**COUNTERS, **COLLECTOR}.items()},
    **{
        f"{name}_{part}": labels | ({"le"} if part == "bucket" else set())
        for name, labels in HISTOGRAMS.items()
        for part in ("bucket", "count", "sum")
    },
}
GROWING = frozenset(SERIES) - frozenset(GAUGES)
"""Series that mean something only by how much they grow."""
EXEMPLARS = frozenset(
    {
        "loopguard_violations_total",
        "loopguard_violations_by_tool_total",
        "loopguard_traces_events_total",
    }
)
"""Series whose exemplars are shown: few points, each of which somebody wants to open."""
