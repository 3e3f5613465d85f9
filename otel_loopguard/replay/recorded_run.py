"""A run of a steps file, played through the engine to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from otel_loopguard.decisions import Decision, RunReport
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.replay.errors import ReplayError
from otel_loopguard.replay.results import (
    PlayedRun,
    ReplayedRun,
    ReplayedViolation,
    Saved,
    replayed_violation,
)
from otel_loopguard.replay.savings import Savings, known_sum
from otel_loopguard.replay.steps_file import RecordedRun, RecordedStep
from otel_loopguard.steps import Step


def replay_run(recorded: RecordedRun, policy: Policy, source: str) -> ReplayedRun:
    """Play a run under `policy` and its own overrides, past every trip, to its end.

    Where the steps' `run` changes, the state resets; the counts of the line are sums.

    Raises:
        ReplayError: the line's `policy` cannot be followed.

    """
    return play_run(recorded, policy, source).run


def play_run(
    recorded: RecordedRun,
    policy: Policy,
    source: str,
    listen: Callable[[Policy], LoopGuard] | None = None,
) -> PlayedRun:
    """Play a run as `replay_run` does; what it cost and how long it took come with it.

    `listen` makes, of the policy in force, a guard that is told of the same steps. It has no say.

    Raises:
        ReplayError: the line's `policy` cannot be followed.

    """
    try:
        ruling = Policy.from_mapping(recorded.policy, base=policy) if recorded.policy else policy
    except PolicyError as error:
        message = f"policy: {error}"
        raise ReplayError(message) from error
    numbers = _invocations(recorded.steps)
    parts = [
        _Part(ruling, None if listen is None else listen(ruling))
        for _ in range(max(numbers, default=0) + 1)
    ]
    for moment in recorded.moments:
        entry = recorded.steps[moment.position]
        part = parts[numbers[moment.position]]
        part.wait(moment.at_s)
        if entry.step is None:
            part.hear_person()
        elif moment.is_end:
            part.end(entry.step, entry.index)
        else:
            part.start(entry.step, entry.index)
    parts[-1].wait(recorded.until_s)
    reports = [part.report() for part in parts]
    saved = [part.savings.total() for part in parts]
    violations = tuple(violation for part in parts for violation in part.violations)
    run = ReplayedRun(
        run_id=recorded.run_id,
        source=source,
        status=reports[-1].status,
        steps=sum(report.steps for report in reports),
        model_calls=sum(report.model_calls for report in reports),
        tool_calls=sum(report.tool_calls for report in reports),
        input_tokens=sum(report.input_tokens for report in reports),
        output_tokens=sum(report.output_tokens for report in reports),
        tripped=any(violation.action == "abort" for violation in violations),
        violations=violations,
        saved=Saved(
            steps=sum(part.steps for part in saved),
            tokens=sum(part.tokens for part in saved),
            cost_usd=sum(part.cost_usd for part in saved),
        ),
    )
    return PlayedRun(
        run=run,
        cost_usd=known_sum(part.savings.all_usd for part in parts),
        saved_cost_usd=known_sum(part.savings.saved_usd for part in parts),
        duration_s=sum(report.duration_s for report in reports),
        agent=recorded.agent,
    )


class _Part:
    """The steps of one line between two changes of `run`."""

    def __init__(self, policy: Policy, listener: LoopGuard | None) -> None:
        self.violations: list[ReplayedViolation] = []
        self.savings = Savings(policy.settings.usage)
        self._now_s = 0.0
        self._index = 0
        """The step that started last."""
        self._guard = LoopGuard(policy, clock=lambda: self._now_s)
        self._guard.is_asked_by_loop = False
        self._listener = listener

    def wait(self, until_s: float) -> None:
        """Let time pass; the limits on time are asked whenever one is due.

        None is where the last turn finished the run.
        """
        due_s = self._guard.due_s()
        if due_s is not None and due_s < until_s:
            self._now_s = due_s
            self._note(self._guard.tick(), self._index)
        self._now_s = until_s

    def hear_person(self) -> None:
        """Let a person speak."""
        self._guard.person_spoke()

    def start(self, step: Step, index: int) -> None:
        """Let a step start."""
        self._index = index
        self._note(self._guard.check(step, commit=True), index)
        if self._listener is not None:
            self._listener.check(step, commit=True)
        self.savings.started(index, step)

    def end(self, step: Step, index: int) -> None:
        """Let a step end."""
        self._note(self._guard.record(step), index)
        if self._listener is not None:
            self._listener.record(step)
        self.savings.ended(index, step)

    def report(self) -> RunReport:
        """End the part."""
        return self._guard.end()

    def _note(self, decision: Decision, index: int) -> None:
        self.violations += (replayed_violation(found, index) for found in decision.violations)
        self.savings.tripped |= any(found.action == "abort" for found in decision.violations)


def _invocations(steps: Sequence[RecordedStep]) -> list[int]:
    """Return for each step how often `run` has changed before it; user turns change nothing."""
    numbers: list[int] = []
    number, current = 0, None
    for entry in steps:
        if entry.step is not None and entry.run is not None:
            number += current is not None and entry.run != current
            current = entry.run
        numbers.append(number)
    return numbers
