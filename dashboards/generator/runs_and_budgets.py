"""Runs and budgets: what goes on, what it spends, and how runs end."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.generator.board import Section, board
from dashboards.generator.panels import (
    BLUE,
    GREEN,
    NEUTRAL,
    ORANGE,
    RED,
    Steps,
    bars,
    curves,
    heat,
    query,
    tile,
)
from dashboards.generator.promql import (
    STEP,
    counted,
    grew,
    most,
    of,
    or_zero,
    quantile,
    some,
    total,
)
from dashboards.generator.tables import at_once, rows

AGENT = "gen_ai_agent_name"
ACTIVE = of("loopguard_run_active")
AGE = of("loopguard_run_age_max_seconds")
STEPS = of("loopguard_run_steps_max")
DEAREST = of("loopguard_run_cost_max")
COST = of("loopguard_cost_total")
TOKENS = of("loopguard_token_usage_total")
TAKEN = of("loopguard_steps_total")
RUNS = of("loopguard_runs_total")
NAMED = "{{gen_ai_agent_name}}"
OLD: Steps = ((None, NEUTRAL), (600, ORANGE), (1800, RED))
MANY: Steps = ((None, NEUTRAL), (50, ORANGE), (200, RED))
DEAR: Steps = ((None, NEUTRAL), (1, ORANGE), (10, RED))
ENDS = {
    "complete": GREEN,
    "aborted": BLUE,
    "provider_error": ORANGE,
    "tool_error": ORANGE,
    "running": RED,
}


def runs_and_budgets() -> Dashboard:
    return board(
        "loopguard-runs",
        "Loopguard / Runs and budgets",
        "What goes on now, what it costs, and how runs end: are the budgets where they should be?",
        [_now(), _going_on(), _spent(), _ended()],
    )


def _now() -> Section:
    return "Now", [
        tile(
            "Runs that go on",
            "Runs of all agents that have begun and not ended.",
            or_zero(total(ACTIVE)),
        ),
        tile(
            "Oldest run",
            "Age of the oldest run that goes on. Too old: find its agent in the table below, and "
            "give it max_duration_s or max_idle_s, which strike while it hangs.",
            or_zero(most(AGE)),
            unit="s",
            steps=OLD,
        ),
        tile(
            "Longest run",
            "Steps of the longest run that goes on. Many steps and no end: max_steps, and the "
            "rules that see repetition.",
            or_zero(most(STEPS)),
            steps=MANY,
        ),
        tile(
            "Dearest run",
            "Known cost of the dearest run that goes on. The limit for it is max_cost_usd. Models "
            "without a known price count nothing here.",
            or_zero(most(DEAREST)),
            unit="currencyUSD",
            steps=DEAR,
        ),
        tile(
            "Spend per hour",
            "US dollars an hour, at the rate of the last minutes, also of runs that have not "
            "ended.",
            or_zero(f"{total(f'rate({COST}[{STEP}])')} * 3600"),
            unit="currencyUSD",
        ),
        tile(
            "Tokens / min",
            "Tokens a minute, input and output, also of runs that have not ended.",
            or_zero(f"{total(f'rate({TOKENS}[{STEP}])')} * 60"),
        ),
    ]


def _going_on() -> Section:
    by_trip = total(ACTIVE, "loopguard_tripped")
    kinds = total(f"rate({TAKEN}[{STEP}])", "loopguard_step_kind")
    return "Runs that go on", [
        rows(
            "Going on, by agent",
            "The oldest, the longest and the dearest run of each agent may be three different "
            "ones. Red is old, long or dear for most agents: what is usual for yours stands "
            "below, at the runs that ended.",
            {
                AGENT: "Agent",
                "Value #A": "Runs",
                "Value #B": "Oldest",
                "Value #C": "Most steps",
                "Value #D": "Dearest",
            },
            at_once(some(total(ACTIVE, AGENT)), ref="A"),
            at_once(some(most(AGE, AGENT)), ref="B"),
            at_once(some(most(STEPS, AGENT)), ref="C"),
            at_once(some(most(DEAREST, AGENT)), ref="D"),
            units={"Oldest": "s", "Dearest": "currencyUSD"},
            steps={"Oldest": OLD, "Most steps": MANY, "Dearest": DEAR},
            sort="Oldest",
            width=18,
        ),
        curves(
            "Tripped or not",
            "Those that have tripped should be gone within seconds where the guard enforces.",
            query(by_trip, "tripped: {{loopguard_tripped}}"),
            width=6,
            colours={"tripped: true": RED, "tripped: false": BLUE},
        ),
        curves(
            "Age of the oldest run",
            "A line that climbs without end is one run that does not end.",
            query(some(most(AGE, AGENT)), NAMED),
            unit="s",
        ),
        curves(
            "Steps of the longest run",
            "A line that climbs steeply is a run that loops; one that stays flat while its age "
            "climbs is a run that hangs.",
            query(some(most(STEPS, AGENT)), NAMED),
        ),
        curves(
            "Cost of the dearest run",
            "Where a run would be stopped by max_cost_usd, and how close runs come to it.",
            query(some(most(DEAREST, AGENT)), NAMED),
            unit="currencyUSD",
        ),
        curves(
            "Steps per minute",
            "Model calls and tool calls, as they start.",
            query(f"{kinds} * 60", "{{loopguard_step_kind}}"),
        ),
    ]


def _spent() -> Section:
    usd_per_hour = f"{total(f'rate({COST}[{STEP}])', AGENT)} * 3600"
    types = total(f"rate({TOKENS}[{STEP}])", "gen_ai_token_type")
    return "What it costs", [
        curves(
            "Spend per hour, by agent",
            "US dollars an hour by agent, as it is spent. A step upwards without a release is "
            "worth a look at the runs that go on.",
            query(some(usd_per_hour), NAMED),
            unit="currencyUSD",
            width=9,
        ),
        rows(
            "Spent, by agent",
            "Dollars, tokens and steps in the time that is shown. Tokens without dollars: the "
            "price of the model is not known; see docs/cost.md.",
            {AGENT: "Agent", "Value #A": "Dollars", "Value #B": "Tokens", "Value #C": "Steps"},
            at_once(some(total(grew(COST), AGENT)), ref="A"),
            at_once(counted(TOKENS, AGENT), ref="B"),
            at_once(counted(TAKEN, AGENT), ref="C"),
            units={"Dollars": "currencyUSD"},
            sort="Dollars",
            width=15,
        ),
        curves(
            "Tokens per minute, by type",
            "Input that grows faster than output is a history that is sent again and again: "
            "max_context_tokens.",
            query(f"{types} * 60", "{{gen_ai_token_type}}"),
        ),
        curves(
            "Cost of a run",
            "Of runs that ended and whose cost is known. Set max_cost_usd well above the 99 of "
            "100 of good runs.",
            query(quantile(0.5, of("loopguard_run_cost_bucket")), "median", ref="A"),
            query(quantile(0.99, of("loopguard_run_cost_bucket")), "99 of 100", ref="B"),
            unit="currencyUSD",
            colours={"median": BLUE, "99 of 100": ORANGE},
        ),
    ]


def _ended() -> Section:
    tokens = of("loopguard_run_token_usage_bucket")
    duration = of("loopguard_run_duration_seconds_bucket")
    spread = total(f"increase({of('loopguard_run_steps_bucket')}[{STEP}])", "le")
    return "Runs that ended", [
        bars(
            "Runs by end",
            "How runs ended. `running` are those whose last step did not say that they were over, "
            "as when a framework's own limit ends them.",
            query(counted(RUNS, "loopguard_run_status", window=STEP), "{{loopguard_run_status}}"),
            colours=ENDS,
        ),
        heat(
            "Steps of a run",
            "The bulk is what your agents need. Set max_steps above it, and below the cells that "
            "stand apart.",
            spread,
        ),
        curves(
            "Duration of a run",
            "Of runs that ended. For max_duration_s.",
            query(quantile(0.5, duration), "median", ref="A"),
            query(quantile(0.99, duration), "99 of 100", ref="B"),
            unit="s",
            colours={"median": BLUE, "99 of 100": ORANGE},
        ),
        curves(
            "Tokens of a run",
            "99 of 100 runs that ended used no more. For max_input_tokens and max_output_tokens.",
            query(quantile(0.99, tokens, "gen_ai_token_type"), "{{gen_ai_token_type}}"),
        ),
    ]
