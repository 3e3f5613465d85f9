"""Keep AI agents from running away, by watching the telemetry they already emit."""

from __future__ import annotations

from otel_loopguard.abort import (
    AbortHook,
    AbortRequest,
    RunAborted,
    RunInterrupted,
    abort_of,
    guarded_run,
    signal_process,
    webhook,
)
from otel_loopguard.agent_loop import (
    AgentResult,
    Message,
    ModelTurn,
    Tool,
    TurnRequest,
    run_agent,
    run_agent_async,
)
from otel_loopguard.decisions import Decision, LoopGuardError, RunReport, Stats, Violation
from otel_loopguard.environment import read_policy
from otel_loopguard.guard import LoopGuard
from otel_loopguard.installation import install, uninstall
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.processor import LoopGuardSpanProcessor
from otel_loopguard.sampling import RecordDropped, can_drop, record_dropped
from otel_loopguard.steps import UNKNOWN, SpanKey, Step, ToolCall
from otel_loopguard.version import VERSION

__version__ = VERSION

__all__ = [
    "UNKNOWN",
    "AbortHook",
    "AbortRequest",
    "AgentResult",
    "Decision",
    "LoopGuard",
    "LoopGuardError",
    "LoopGuardSpanProcessor",
    "Message",
    "ModelTurn",
    "Policy",
    "PolicyError",
    "RecordDropped",
    "RunAborted",
    "RunInterrupted",
    "RunReport",
    "SpanKey",
    "Stats",
    "Step",
    "Tool",
    "ToolCall",
    "TurnRequest",
    "Violation",
    "abort_of",
    "can_drop",
    "guarded_run",
    "install",
    "read_policy",
    "record_dropped",
    "run_agent",
    "run_agent_async",
    "signal_process",
    "uninstall",
    "webhook",
]
