"""Detectors: one rule, one file. This table is all that the guard knows of them."""

from __future__ import annotations

from otel_loopguard.detectors._base import (
    COUNTED,
    Action,
    Detector,
    Facts,
    Finding,
    Limits,
    Settings,
    Thresholds,
)
from otel_loopguard.detectors.cyclic_calls import CyclicCalls
from otel_loopguard.detectors.llm_call_budget import LlmCallBudget
from otel_loopguard.detectors.loop_pattern import LoopPattern
from otel_loopguard.detectors.repeated_call import RepeatedCall
from otel_loopguard.detectors.repeated_call_limit import RepeatedCallLimit
from otel_loopguard.detectors.repeated_result import RepeatedResult
from otel_loopguard.detectors.same_tool import SameTool
from otel_loopguard.detectors.step_budget import StepBudget
from otel_loopguard.detectors.time_budget import TimeBudget
from otel_loopguard.detectors.tool_call_budget import ToolCallBudget

__all__ = [
    "COUNTED",
    "DEFAULT_RULES",
    "DETECTORS",
    "Action",
    "Detector",
    "Facts",
    "Finding",
    "Limits",
    "Settings",
    "Thresholds",
]

DETECTORS: tuple[type[Detector], ...] = (
    StepBudget,
    LlmCallBudget,
    ToolCallBudget,
    TimeBudget,
    RepeatedCallLimit,
    SameTool,
    LoopPattern,
    RepeatedResult,
    RepeatedCall,
    CyclicCalls,
)
"""In the order in which they are asked, limits first: the first that refuses names the reason."""

DEFAULT_RULES: dict[str, Thresholds] = {
    RepeatedResult.rule: Thresholds(warn=3, abort=5),
    RepeatedCall.rule: Thresholds(warn=4, abort=8),
    CyclicCalls.rule: Thresholds(warn=2, abort=3),
}
"""The rules that are on unless switched off, where 21,365 recorded runs put their thresholds."""
