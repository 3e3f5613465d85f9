"""What `replay` says about a run, and about input that could not be read."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from otel_loopguard.decisions import Phase, Violation
from otel_loopguard.detectors import Action
from otel_loopguard.endings import Status

Unit: TypeAlias = Literal["line", "message"]
"""What a recorded file is made of."""


class ReplayedViolation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule broken in a recorded run."""

    rule: str
    reason: str
    action: Action
    step: int
    """From 1: the index in `steps` of a steps file, else the number of the step in its run."""
    phase: Phase
    count: float
    threshold: float


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What stopping at the first trip would have saved: everything that started after it."""

    steps: int = 0
    tokens: int = 0
    """Input and output tokens."""
    cost_usd: float = 0.0


class ReplayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded run under a policy. Its fields are those of the JSON output, in their order."""

    run_id: str
    source: str
    """The file, as given."""
    status: Status
    """How the recording ended, whatever the policy makes of it."""
    steps: int
    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    tripped: bool
    """A violation's action is `abort`."""
    violations: tuple[ReplayedViolation, ...]
    saved: Saved


class PlayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run under a policy, with what the output of `replay` does not show."""

    run: ReplayedRun
    cost_usd: float | None
    """US dollars; `None` where the cost of no step is known."""
    saved_cost_usd: float | None
    """What of that is saved; `None` where it is something, but the cost of none of it is known."""
    duration_s: float
    """In seconds of the recording's own time line."""
    agent: str
    """The agent whose run it is; empty where nothing names one."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A line or message, or with `line` `None` a whole file, that could not be read."""

    source: str
    line: int | None
    why: str
    is_read: bool = False
    """The line was read all the same, but for what it says of the run."""

    def __str__(self) -> str:
        """Return it as `FILE:LINE: why`."""
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {self.why}"


class LineCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines (or messages, in OTLP protobuf) of a file hold anything, how many are bad."""

    source: str
    lines: int
    bad: int
    unclear: int = 0
    """Lines that were read, but for what they say of the run's success or its label."""
    unit: Unit = "line"


def replayed_violation(violation: Violation, step: int) -> ReplayedViolation:
    """Return a violation as the output shows it, at this step number."""
    return ReplayedViolation(
        rule=violation.rule,
        reason=violation.reason,
        action=violation.action,
        step=step,
        phase=violation.phase,
        count=violation.count,
        threshold=violation.threshold,
    )
