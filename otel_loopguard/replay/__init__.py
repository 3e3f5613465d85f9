"""Recorded runs, replayed: OTLP and steps files through the engine and its policy."""

from __future__ import annotations

from otel_loopguard.replay.errors import ReplayError
from otel_loopguard.replay.files import replay_file
from otel_loopguard.replay.otlp_json import read_spans
from otel_loopguard.replay.recorded_run import replay_run
from otel_loopguard.replay.results import (
    LineCounts,
    Problem,
    ReplayedRun,
    ReplayedViolation,
    Saved,
)
from otel_loopguard.replay.steps_file import RecordedRun, RecordedStep, read_run

__all__ = [
    "LineCounts",
    "Problem",
    "RecordedRun",
    "RecordedStep",
    "ReplayError",
    "ReplayedRun",
    "ReplayedViolation",
    "Saved",
    "read_run",
    "read_spans",
    "replay_file",
    "replay_run",
]
