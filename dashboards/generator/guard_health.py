"""Guard health: what the guard cannot see, what went wrong in it, and what it costs."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.generator.board import Section, board
from dashboards.generator.panels import (
    ANY_IS_BAD,
    ANY_IS_ODD,
    GREEN,
    ORANGE,
    RED,
    bars,
    curves,
    query,
    tile,
)
from dashboards.generator.promql import RANGE, STEP, counted, of, or_zero, quantile
from dashboards.generator.tables import at_once, rows

INFO = of("loopguard_info", agent=False)
ERRORS = of("loopguard_errors_total", agent=False)
GAPS = of("loopguard_gaps_total")
HINTS = of("loopguard_hints_total")
EVICTIONS = of("loopguard_evictions_total", agent=False)
RELOADS = of("loopguard_policy_reloads_total", agent=False)
IN_GUARD = of("loopguard_guard_duration_seconds_bucket", agent=False)
# Of a histogram one name, since it is one metric.
NAMES = ('__name__=~"loopguard_.+"', '__name__!~".+_(bucket|sum)"')
OVERFLOW = of("", *NAMES, 'otel_metric_overflow="true"', agent=False)
RELOADED = "loopguard_policy_reload_result"


def guard_health() -> Dashboard:
    return board(
        "loopguard-health",
        "Loopguard / Guard health",
        "Does the guard run, does it see what it needs, and what does it cost?",
        [_now(), _blind(), _inside()],
    )


def _now() -> Section:
    observing = of("loopguard_info", 'loopguard_mode="observe"', agent=False)
    failed = of("loopguard_policy_reloads_total", f'{RELOADED}="failed"', agent=False)
    return "Now, and in the time that is shown", [
        tile(
            "Guards at work",
            "One for each process that has one. Fewer than processes: the guard is not wired in "
            "everywhere; 0: nothing is watched.",
            or_zero(f"count({INFO})"),
            steps=((None, RED), (1, GREEN)),
            width=6,
        ),
        tile(
            "Only observing",
            "Guards in mode observe: they tell, and stop nothing. OTEL_LOOPGUARD_MODE=enforce, or "
            "mode in the policy file, changes that.",
            or_zero(f"count({observing})"),
            steps=ANY_IS_ODD,
            width=6,
        ),
        tile(
            "Faults",
            "Errors inside the guard. The agent went on unharmed, but a rule or a hook may not "
            "have done its work: the log has the first of each kind.",
            or_zero(counted(ERRORS)),
            steps=ANY_IS_BAD,
            width=6,
        ),
        tile(
            "Gaps",
            "What rules look at and steps did not show. Rules that need it are blind there: "
            "`otel-loopguard doctor` names the setting that shows more.",
            or_zero(counted(GAPS)),
            steps=ANY_IS_ODD,
            width=6,
        ),
        tile(
            "Evictions",
            "What was forgotten because a store was full: runs may be cut in two, or come back "
            "unknown. More runs at once in one process than the guard holds.",
            or_zero(counted(EVICTIONS)),
            steps=ANY_IS_ODD,
            width=6,
        ),
        tile(
            "Reloads failed",
            "A policy file that has changed and could not be read: the policy before it stays in "
            "force. The log of otel_loopguard.reloading says what is wrong with it.",
            or_zero(counted(failed)),
            steps=ANY_IS_BAD,
            width=6,
        ),
        tile(
            "Overhead of a span",
            "Time in the guard for 99 of 100 spans, on the agent's own thread, by a sample of "
            "spans.",
            quantile(0.99, IN_GUARD, window=RANGE),
            unit="s",
            steps=((None, GREEN), (0.001, ORANGE), (0.01, RED)),
            width=6,
        ),
        tile(
            "Series cut off",
            "Metrics of the guard that have more series than the SDK keeps: what is beyond is in "
            "one series without labels. Fewer agent or tool names, or a view with a higher limit.",
            or_zero(f"count(count by (__name__) ({OVERFLOW}))"),
            steps=ANY_IS_BAD,
            width=6,
        ),
    ]


def _blind() -> Section:
    kinds = ("loopguard_gap", "loopguard_step_kind")
    return "What the guard cannot see", [
        bars(
            "Gaps by kind",
            "Without arguments or results the rules for repetition cannot tell one call from "
            "another; without usage, budgets in tokens and dollars never strike.",
            query(
                counted(GAPS, *kinds, window=STEP),
                "{{loopguard_gap}} of {{loopguard_step_kind}}",
            ),
        ),
        rows(
            "Gaps by agent",
            "An agent that stands here is guarded by fewer rules than it looks. Run "
            "`otel-loopguard doctor` beside it.",
            {
                "gen_ai_agent_name": "Agent",
                "loopguard_step_kind": "Step",
                "loopguard_gap": "Not shown",
                "Value": "Steps",
            },
            at_once(counted(GAPS, "gen_ai_agent_name", *kinds)),
        ),
        bars(
            "Evictions by store",
            "Which store was full.",
            query(counted(EVICTIONS, "loopguard_store", window=STEP), "{{loopguard_store}}"),
        ),
        bars(
            "Hints by rule",
            "Hints that models were given before a rule was broken. Many hints and few trips: "
            "they work.",
            query(counted(HINTS, "loopguard_rule", window=STEP), "{{loopguard_rule}}"),
        ),
    ]


def _inside() -> Section:
    both = "loopguard_callback"
    return "Inside", [
        curves(
            "Time in the guard per span",
            "By callback of the span processor, on the agent's thread, for a sample of spans. "
            "Stops that were asked for meanwhile are in it: peaks beside trips are hooks. "
            "Exporters are not.",
            query(quantile(0.5, IN_GUARD, both), "{{loopguard_callback}}, median", ref="A"),
            query(quantile(0.99, IN_GUARD, both), "{{loopguard_callback}}, 99 of 100", ref="B"),
            unit="s",
        ),
        bars(
            "Faults by type",
            "Faults inside the guard, by the class of the error. Each is a bug, or a hook's or a "
            "dialect's own: the log has the first of each with its traceback.",
            query(counted(ERRORS, "error_type", window=STEP), "{{error_type}}"),
        ),
        rows(
            "Guards by service",
            "By service, version and mode. Two versions for long: a deployment that has not gone "
            "through.",
            {
                "job": "Service",
                "loopguard_version": "Version",
                "loopguard_mode": "Mode",
                "Value": "Guards",
            },
            at_once(f"count by (job, loopguard_version, loopguard_mode) ({INFO})"),
        ),
        bars(
            "Policy reloads",
            "Changes of the policy file. New runs go by it where it is ok.",
            query(counted(RELOADS, RELOADED, window=STEP), "{{loopguard_policy_reload_result}}"),
            colours={"ok": GREEN, "failed": RED},
        ),
    ]
