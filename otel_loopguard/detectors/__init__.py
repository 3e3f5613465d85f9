"""Detectors: one rule, one file. This table is all that the guard knows of them."""

from __future__ import annotations

from otel_loopguard.detectors._base import (
    APART,
    COUNTED,
    Action,
    Continued,
    Detector,
    Facts,
    Finding,
    Reach,
    Turn,
)
from otel_loopguard.detectors.agent_depth import AgentDepth
from otel_loopguard.detectors.agent_handoff_cycle import AgentHandoffCycle
from otel_loopguard.detectors.consecutive_errors import ConsecutiveErrors
from otel_loopguard.detectors.context_budget import ContextBudget
from otel_loopguard.detectors.cost_budget import CostBudget
from otel_loopguard.detectors.cyclic_calls import CyclicCalls
from otel_loopguard.detectors.extra_turn import ExtraTurn
from otel_loopguard.detectors.idle_run import IdleRun
from otel_loopguard.detectors.idle_turns import IdleTurns
from otel_loopguard.detectors.llm_call_budget import LlmCallBudget
from otel_loopguard.detectors.loop_pattern import LoopPattern
from otel_loopguard.detectors.no_novelty import NoNovelty
from otel_loopguard.detectors.repeated_call import RepeatedCall
from otel_loopguard.detectors.repeated_call_limit import RepeatedCallLimit
from otel_loopguard.detectors.repeated_error import RepeatedError
from otel_loopguard.detectors.repeated_output import RepeatedOutput
from otel_loopguard.detectors.repeated_result import RepeatedResult
from otel_loopguard.detectors.revisited_results import RevisitedResults
from otel_loopguard.detectors.same_tool import SameTool
from otel_loopguard.detectors.similar_calls import SimilarCalls
from otel_loopguard.detectors.similar_results import SimilarResults
from otel_loopguard.detectors.stagnation import Stagnation
from otel_loopguard.detectors.step_budget import StepBudget
from otel_loopguard.detectors.step_rate import StepRate
from otel_loopguard.detectors.sweep import Sweep
from otel_loopguard.detectors.time_budget import TimeBudget
from otel_loopguard.detectors.token_budget import TokenBudget
from otel_loopguard.detectors.tool_call_budget import ToolCallBudget
from otel_loopguard.detectors.truncated_turns import TruncatedTurns
from otel_loopguard.detectors.unchanged_result import UnchangedResult
from otel_loopguard.detectors.unknown_tool import UnknownTool
from otel_loopguard.settings import Limits, Settings, Thresholds

__all__ = [
    "APART",
    "COUNTED",
    "DEFAULT_RULES",
    "DETECTORS",
    "RULES",
    "Action",
    "Continued",
    "Detector",
    "Facts",
    "Finding",
    "Limits",
    "Reach",
    "Settings",
    "Thresholds",
    "Turn",
]

_LIMITS: tuple[type[Detector], ...] = (
    StepBudget,
    LlmCallBudget,
    ToolCallBudget,
    TimeBudget,
    IdleRun,
    TokenBudget,
    ContextBudget,
    CostBudget,
    AgentDepth,
    StepRate,
    ConsecutiveErrors,
    IdleTurns,
    RepeatedCallLimit,
    SameTool,
    LoopPattern,
)
_RULES: tuple[type[Detector], ...] = (
    RepeatedResult,
    RepeatedCall,
    CyclicCalls,
    RevisitedResults,
    NoNovelty,
    UnchangedResult,
    Stagnation,
    RepeatedError,
    RepeatedOutput,
    TruncatedTurns,
    UnknownTool,
    ExtraTurn,
    AgentHandoffCycle,
    SimilarCalls,
    SimilarResults,
    Sweep,
)

DETECTORS: tuple[type[Detector], ...] = (*_LIMITS, *_RULES)
"""In the order in which they are asked, limits first: the first that refuses names the reason."""

RULES: frozenset[str] = frozenset(detector.rule for detector in _RULES)
"""The rules that have thresholds; the others are limits."""

DEFAULT_RULES: dict[str, Thresholds] = {
    RepeatedResult.rule: Thresholds(warn=3, abort=5),
    RepeatedCall.rule: Thresholds(warn=4, abort=8),
    CyclicCalls.rule: Thresholds(warn=2, abort=3),
    RevisitedResults.rule: Thresholds(warn=6, abort=7),
    NoNovelty.rule: Thresholds(warn=3, abort=5),
    UnchangedResult.rule: Thresholds(warn=4, abort=8),
    Stagnation.rule: Thresholds(warn=15, abort=20),
    RepeatedError.rule: Thresholds(warn=3, abort=6),
    RepeatedOutput.rule: Thresholds(warn=3, abort=5),
    TruncatedTurns.rule: Thresholds(warn=2, abort=3),
    UnknownTool.rule: Thresholds(warn=3, abort=5),
    ExtraTurn.rule: Thresholds(warn=1),
    AgentHandoffCycle.rule: Thresholds(warn=3, abort=6),
}
"""The rules that are on unless switched off, where 21,365 recorded runs put their thresholds."""
