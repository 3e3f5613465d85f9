"""What a policy makes of one recorded run, as far as a backtest counts it."""

from __future__ import annotations

import msgspec

from otel_loopguard.backtest.step_classes import ClassesByAgent, StepClasses
from otel_loopguard.decisions import Phase
from otel_loopguard.endings import Status
from otel_loopguard.replay import RecordedRun, ReplayedViolation, Saved
from otel_loopguard.replay.results import PlayedRun


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """The first violation of a run whose action is abort."""

    rule: str
    step: int
    """From 1, as `replay` counts."""
    phase: Phase
    count: float
    threshold: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One run under one policy."""

    policy: int
    """Which of the policies, from 0."""
    run_id: str
    file: str
    line: int | None
    """The line of a steps file; `None` for a run made of spans."""
    origin: str
    agent: str
    model: str
    success: bool | None
    label: str | bool | None
    status: Status
    steps: int
    model_calls: int
    tool_calls: int
    tokens: int
    """Input and output tokens."""
    cost_usd: float | None
    """US dollars; `None` where the cost of no step is known."""
    duration_s: float
    trip: Trip | None
    warned: tuple[str, ...]
    """The rules that warned, in the order in which they spoke."""
    aborted: tuple[str, ...]
    """The rules that would have stopped the run, that of the trip first."""
    saved: Saved
    saved_cost_usd: float | None
    """What is saved; `None` where it is something, but the cost of none of it is known."""
    classes: ClassesByAgent | None = None
    """What its tool steps are to `stagnation`; `None` where nobody asked."""


def outcome_of(
    played: PlayedRun,
    policy: int,
    recorded: RecordedRun | None = None,
    line: int | None = None,
    classes: StepClasses | None = None,
) -> Outcome:
    """Return a played run as a backtest counts it; `recorded` is its line, if it had one."""
    run = played.run
    aborts = [found for found in run.violations if found.action == "abort"]
    return Outcome(
        policy=policy,
        run_id=run.run_id,
        file=run.source,
        line=line,
        origin="" if recorded is None else recorded.origin,
        agent=played.agent,
        model="" if recorded is None else recorded.model,
        success=None if recorded is None else recorded.success,
        label=None if recorded is None else recorded.label,
        status=run.status,
        steps=run.steps,
        model_calls=run.model_calls,
        tool_calls=run.tool_calls,
        tokens=run.input_tokens + run.output_tokens,
        cost_usd=played.cost_usd,
        duration_s=played.duration_s,
        trip=_trip(aborts[0]) if aborts else None,
        warned=_rules(run.violations, "warn"),
        aborted=_rules(run.violations, "abort"),
        saved=run.saved,
        saved_cost_usd=played.saved_cost_usd,
        classes=None if classes is None else classes.by_agent(),
    )


def _trip(found: ReplayedViolation) -> Trip:
    return Trip(
        rule=found.rule,
        step=found.step,
        phase=found.phase,
        count=found.count,
        threshold=found.threshold,
    )


def _rules(violations: tuple[ReplayedViolation, ...], action: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found.rule for found in violations if found.action == action))
