"""Names of attributes and events, made of the YAML files beside it by `make telemetry-names`."""

from __future__ import annotations

# OpenTelemetry's own names, as far as the guard writes them.
ERROR_TYPE = "error.type"
"""The class of what went wrong."""
GEN_AI_AGENT_NAME = "gen_ai.agent.name"
"""The agent that acts."""
GEN_AI_TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 -- a name
"""`input` or `output`."""
GEN_AI_TOOL_NAME = "gen_ai.tool.name"
"""The tool that is called."""

# Violations.
RULE = "loopguard.rule"
"""The rule that was broken."""
REASON = "loopguard.reason"
"""The reason of that rule."""
ACTION = "loopguard.action"
"""What the rule asks for."""
PHASE = "loopguard.phase"
"""When it was found."""
COUNT = "loopguard.count"
"""How often it happened."""
THRESHOLD = "loopguard.threshold"
"""Where the line was."""
MESSAGE = "loopguard.message"
"""One sentence for people, without content."""
STEP_NUMBER = "loopguard.step.number"
"""The step's number in its run, from 1."""
STEP_TRACE_ID = "loopguard.step.trace_id"
"""The trace of the offending span, 32 hexadecimal digits."""
STEP_SPAN_ID = "loopguard.step.span_id"
"""The offending span, 16 hexadecimal digits."""
WASTED_STEPS = "loopguard.wasted.steps"
"""Steps that did nothing but repeat."""
WASTED_TOKENS = "loopguard.wasted.tokens"
"""Tokens that the run has spent since the first of them."""
WASTED_COST = "loopguard.wasted.cost"
"""US dollars that it has spent since, as far as costs are known."""

# Runs.
RUN_ID = "loopguard.run.id"
"""The run."""
RUN_STATUS = "loopguard.run.status"
"""How the run ended, or would end here."""
RUN_STEPS = "loopguard.run.steps"
"""Steps of the run so far."""
RUN_STEPS_AFTER_TRIP = "loopguard.run.steps_after_trip"
"""Steps that started after the trip, and nothing kept them from happening."""
TRIPPED = "loopguard.tripped"
"""Whether a violation said abort."""

# Steps.
STEP_KIND = "loopguard.step.kind"
"""What the step was."""
STEP_PREVENTED = "loopguard.step.prevented"
"""The call of this span was not made."""
GAP = "loopguard.gap"
"""What a step did not show."""

# Guard.
ABORT_HOOK = "loopguard.abort.hook"
"""What was to stop the run."""
ABORT_RESULT = "loopguard.abort.result"
"""What became of a stop."""
CALLBACK = "loopguard.callback"
"""What the guard was called for."""
MODE = "loopguard.mode"
"""What the guard does about a trip."""
POLICY_RELOAD_RESULT = "loopguard.policy.reload.result"
"""What became of a changed policy file."""
STORE = "loopguard.store"
"""Which bounded store was full."""
VERSION = "loopguard.version"
"""The version of otel-loopguard."""

# Given.
ARGUMENTS_HASH = "loopguard.arguments.hash"
"""Equal where a tool's arguments are."""
RESULT_HASH = "loopguard.result.hash"
"""Equal where a tool's results are."""
VETOABLE = "loopguard.vetoable"
"""What is raised when this span starts keeps its call from happening."""

# Events.
EVENT_VIOLATION = "loopguard.violation"
"""A rule was broken."""
