"""Metrics of the guard, made of the YAML files beside it by `make telemetry-names`."""

from __future__ import annotations

from otel_loopguard.registry import names
from otel_loopguard.registry.metric import Metric

VIOLATIONS = Metric(
    "loopguard.violations",
    "counter",
    "{violation}",
    "Broken rules, once per level and run",
    (names.RULE, names.ACTION, names.GEN_AI_AGENT_NAME),
)

VIOLATIONS_BY_TOOL = Metric(
    "loopguard.violations.by_tool",
    "counter",
    "{violation}",
    "Rules broken by tool calls",
    (names.RULE, names.ACTION, names.GEN_AI_TOOL_NAME),
)

HINTS = Metric(
    "loopguard.hints",
    "counter",
    "{hint}",
    "Hints that models were given before it was too late",
    (names.RULE, names.GEN_AI_AGENT_NAME),
)

RUNS = Metric(
    "loopguard.runs",
    "counter",
    "{run}",
    "Runs that ended",
    (names.RUN_STATUS, names.TRIPPED, names.GEN_AI_AGENT_NAME),
)

RUN_STEPS = Metric(
    "loopguard.run.steps",
    "histogram",
    "{step}",
    "Steps of a run",
    (names.GEN_AI_AGENT_NAME,),
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)

RUN_DURATION = Metric(
    "loopguard.run.duration",
    "histogram",
    "s",
    "Duration of a run",
    (names.GEN_AI_AGENT_NAME,),
    buckets=(0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600),
)

RUN_TOKEN_USAGE = Metric(
    "loopguard.run.token.usage",
    "histogram",
    "{token}",
    "Tokens of a run",
    (names.GEN_AI_TOKEN_TYPE, names.GEN_AI_AGENT_NAME),
    buckets=(100, 1000, 5000, 10000, 50000, 100000, 500000, 1000000, 5000000),
)

RUN_COST = Metric(
    "loopguard.run.cost",
    "histogram",
    "{USD}",
    "Cost of a run, as far as it is known",
    (names.GEN_AI_AGENT_NAME,),
    buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100),
)

RUN_ACTIVE = Metric(
    "loopguard.run.active",
    "updowncounter",
    "{run}",
    "Runs that go on",
    (names.TRIPPED, names.GEN_AI_AGENT_NAME),
    observed=True,
)

RUN_AGE_MAX = Metric(
    "loopguard.run.age.max",
    "gauge",
    "s",
    "Age of the oldest run that goes on",
    (names.GEN_AI_AGENT_NAME,),
    observed=True,
)

RUN_STEPS_MAX = Metric(
    "loopguard.run.steps.max",
    "gauge",
    "{step}",
    "Most steps of a run that goes on",
    (names.GEN_AI_AGENT_NAME,),
    observed=True,
)

RUN_COST_MAX = Metric(
    "loopguard.run.cost.max",
    "gauge",
    "{USD}",
    "Highest cost of a run that goes on, as far as it is known",
    (names.GEN_AI_AGENT_NAME,),
    observed=True,
)

STEPS = Metric(
    "loopguard.steps",
    "counter",
    "{step}",
    "Steps that were counted, while runs go on",
    (names.STEP_KIND, names.GEN_AI_AGENT_NAME),
    observed=True,
)

TOKEN_USAGE = Metric(
    "loopguard.token.usage",
    "counter",
    "{token}",
    "Tokens that were used, while runs go on",
    (names.GEN_AI_TOKEN_TYPE, names.GEN_AI_AGENT_NAME),
    observed=True,
)

COST = Metric(
    "loopguard.cost",
    "counter",
    "{USD}",
    "Cost as far as it is known, while runs go on",
    (names.GEN_AI_AGENT_NAME,),
    observed=True,
)

RUN_STEPS_AFTER_TRIP = Metric(
    "loopguard.run.steps_after_trip",
    "counter",
    "{step}",
    "Steps that started after the trip and happened",
    (names.GEN_AI_AGENT_NAME,),
)

RUN_DURATION_AFTER_TRIP = Metric(
    "loopguard.run.duration_after_trip",
    "histogram",
    "s",
    "Time from the trip of a run to its end",
    (names.GEN_AI_AGENT_NAME,),
    buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30),
)

ABORT_REQUESTS = Metric(
    "loopguard.abort.requests",
    "counter",
    "{request}",
    "What was asked to stop runs",
    (names.ABORT_HOOK,),
)

ABORTS = Metric(
    "loopguard.aborts",
    "counter",
    "{abort}",
    "What became of stopping runs",
    (names.ABORT_HOOK, names.ABORT_RESULT),
)

ABORT_DURATION = Metric(
    "loopguard.abort.duration",
    "histogram",
    "s",
    "Time from a trip to the stop",
    (names.ABORT_HOOK,),
    buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30),
)

GAPS = Metric(
    "loopguard.gaps",
    "counter",
    "{gap}",
    "What rules look at and steps did not show",
    (names.GAP, names.STEP_KIND, names.GEN_AI_AGENT_NAME),
)

GUARD_DURATION = Metric(
    "loopguard.guard.duration",
    "histogram",
    "s",
    "Time that the guard took for a span, of one span in 251",
    (names.CALLBACK,),
    buckets=(5e-06, 1e-05, 2.5e-05, 5e-05, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1),
)

ERRORS = Metric(
    "loopguard.errors",
    "counter",
    "{error}",
    "Faults inside the guard",
    (names.ERROR_TYPE,),
)

POLICY_RELOADS = Metric(
    "loopguard.policy.reloads",
    "counter",
    "{reload}",
    "What became of policy files that have changed",
    (names.POLICY_RELOAD_RESULT,),
)

EVICTIONS = Metric(
    "loopguard.evictions",
    "counter",
    "{eviction}",
    "What was forgotten because a store was full",
    (names.STORE,),
    observed=True,
)

INFO = Metric(
    "loopguard.info",
    "gauge",
    "{guard}",
    "The guard at work",
    (names.VERSION, names.MODE),
    observed=True,
)

METRICS = (
    VIOLATIONS,
    VIOLATIONS_BY_TOOL,
    HINTS,
    RUNS,
    RUN_STEPS,
    RUN_DURATION,
    RUN_TOKEN_USAGE,
    RUN_COST,
    RUN_ACTIVE,
    RUN_AGE_MAX,
    RUN_STEPS_MAX,
    RUN_COST_MAX,
    STEPS,
    TOKEN_USAGE,
    COST,
    RUN_STEPS_AFTER_TRIP,
    RUN_DURATION_AFTER_TRIP,
    ABORT_REQUESTS,
    ABORTS,
    ABORT_DURATION,
    GAPS,
    GUARD_DURATION,
    ERRORS,
    POLICY_RELOADS,
    EVICTIONS,
    INFO,
)
"""All metrics."""
