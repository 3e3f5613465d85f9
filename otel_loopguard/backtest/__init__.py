"""Recorded runs under several policies: how often, how early and how rightly each would stop."""

from __future__ import annotations

from otel_loopguard.backtest.counting import Backtest, Grouping
from otel_loopguard.backtest.files import play_files
from otel_loopguard.backtest.fit_report import FitReport, FittedClass, policy_text
from otel_loopguard.backtest.fits import Fit, FitError
from otel_loopguard.backtest.fitting import CurvePoint
from otel_loopguard.backtest.labels import Label, LabelError, Said, read_labels
from otel_loopguard.backtest.outcomes import Outcome, Trip
from otel_loopguard.backtest.recordings import Recordings, find_recordings
from otel_loopguard.backtest.report import (
    BacktestReport,
    Group,
    PolicyReport,
    RuleCount,
    RunRow,
    SavedShare,
)
from otel_loopguard.backtest.suggestions import Suggestions
from otel_loopguard.backtest.wilson import Rate

__all__ = [
    "Backtest",
    "BacktestReport",
    "CurvePoint",
    "Fit",
    "FitError",
    "FitReport",
    "FittedClass",
    "Group",
    "Grouping",
    "Label",
    "LabelError",
    "Outcome",
    "PolicyReport",
    "Rate",
    "Recordings",
    "RuleCount",
    "RunRow",
    "Said",
    "SavedShare",
    "Suggestions",
    "Trip",
    "find_recordings",
    "play_files",
    "policy_text",
    "read_labels",
]
