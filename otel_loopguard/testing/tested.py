"""What one test's runs have come to, as plain data: it travels between processes and into files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from otel_loopguard.testing import counted
from otel_loopguard.testing.marking import Kind, Marking
from otel_loopguard.testing.runs_heard import RunHeard, distinct
from otel_loopguard.testing.trials import Expected, Observed

if TYPE_CHECKING:
    from otel_loopguard.testing.capture import Capture

_IN_PROCESS = "otel_loopguard.testing.models"


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One assertion about one run."""

    expected: Expected
    observed: Observed | None = None
    """`None` if the run has not ended."""


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """A trip, as a marker names it."""

    rule: str | None
    step: int | None = None


class RunsOfTest(msgspec.Struct, frozen=True, kw_only=True):
    """What one test's runs have come to."""

    test: str
    """The test's node id."""
    kind: Kind
    models: tuple[str, ...]
    """The scripted models that were at work."""
    recording: str | None = None
    outcome: str = ""
    trials: tuple[Tried, ...] = ()
    expected_trip: Trip | None = None
    """What the marker says is to trip."""
    trips: tuple[Trip, ...] = ()
    """What has tripped."""
    stopped: tuple[str, ...] = ()
    """The rules that runs were stopped by, one for each run."""
    completed: int = 0
    """Runs that ended by themselves, and that nothing has tripped."""
    observed_only: int = 0
    """Runs that tripped and went on: nothing stops them."""
    guards_missing: int = 0
    """Assertions on runs that no guard saw."""


def runs_of_test(test: str, capture: Capture, marking: Marking | None, outcome: str) -> RunsOfTest:
    """Return what a test's runs have come to."""
    runs = distinct(capture.runs())
    models = [*capture.models, *(model for trial in capture.trials for model in trial.models)]
    stopped = [run for run in runs if run.was_stopped]
    went_on = [run for run in runs if not run.was_stopped]
    seen = [trial.observed for trial in capture.trials if trial.observed is not None]
    missing = sum(1 for each in seen if not each.guards_seen)
    expects = marking is not None and marking.trips is not None
    return RunsOfTest(
        test=test,
        kind=(None if marking is None else marking.kind) or _kind_of(models),
        models=tuple(sorted({counted.named(model) for model in models})),
        recording=None if marking is None else marking.recording,
        outcome=outcome,
        trials=tuple(
            Tried(expected=trial.expected, observed=trial.observed) for trial in capture.trials
        ),
        expected_trip=Trip(rule=marking.trips, step=marking.at) if marking else None,
        trips=tuple(Trip(rule=run.trip.rule, step=run.trip.step) for run in runs if run.trip),
        stopped=tuple(run.trip.rule if run.trip else "its rules" for run in stopped),
        completed=sum(_completed(run) for run in went_on),
        observed_only=sum(1 for run in went_on if run.trip is not None),
        guards_missing=missing + (expects and not runs and not capture.trials),
    )


def _completed(run: RunHeard) -> bool:
    """Say whether a run has ended by itself; a loop need not tell its engine that it has."""
    report = run.report
    is_well = report is not None and report.status in {"complete", "running"}
    return run.trip is None and is_well


def _kind_of(models: Iterable[object]) -> Kind:
    """Say what is tried, by where the model was: before a server there is a real client."""
    modules = {type(model).__module__ for model in models}
    scripted = {name for name in modules if name.startswith("otel_loopguard.testing.")}
    return "adapter" if scripted - {_IN_PROCESS} else "unit"


def summary(all_tested: Iterable[RunsOfTest]) -> str:
    """Return what runs have come to, in one line; empty if there were none."""
    known = list(all_tested)
    rules = Counter(rule for each in known for rule in each.stopped)
    stopped, completed = rules.total(), sum(each.completed for each in known)
    observed = sum(each.observed_only for each in known)
    missing = sum(each.guards_missing for each in known)
    if not (stopped or completed or observed or missing):
        return ""
    which = ", ".join(f"{count} {rule}" for rule, count in rules.most_common())
    parts = [
        f"{_some(stopped, 'run')} stopped{f' ({which})' if which else ''}",
        f"{completed} completed",
        *([f"{observed} tripped and not stopped"] if observed else ()),
        f"{_some(missing, 'guard')} missing",
    ]
    return f"loopguard: {', '.join(parts)}"


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
