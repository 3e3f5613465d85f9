"""Recordings of several programs told of at once: each comes to the same as alone."""

from __future__ import annotations

from contextvars import Context
from random import Random

import pytest

from otel_loopguard import Policy
from otel_loopguard.decisions import RunReport
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT
from otel_loopguard.tracker import RunTracker
from tests._recordings import FOLDERS, Event, Recording, recordings

AT_ONCE, ROUNDS = 4, 12


def context() -> Context:
    made = Context()
    made.run(CURRENT.set, None)
    return made


class Counted:
    """What became of the runs of one recording."""

    def __init__(self) -> None:
        self.runs: dict[Run, RunReport | None] = {}

    def tell(self, tracker: RunTracker, event: Event) -> None:
        hear = tracker.started if event.is_start else tracker.ended
        verdict = hear(event.record)
        if verdict is not None:
            self.runs[verdict.run] = verdict.report or self.runs.get(verdict.run)

    def outcome(self, tracker: RunTracker) -> list[tuple[int, int, list[str]]]:
        reports = [report or tracker.runs.close(run) for run, report in self.runs.items()]
        return sorted(
            (report.model_calls, report.tool_calls, sorted(v.rule for v in report.violations))
            for report in reports
        )


def played(several: list[list[Event]], order: Random) -> list[list[tuple[int, int, list[str]]]]:
    tracker, counted = RunTracker(Policy(), live=True), [Counted() for _ in several]
    contexts, left = [context() for _ in several], [list(reversed(each)) for each in several]
    while any(left):
        number = order.choice([each for each, events in enumerate(left) if events])
        contexts[number].run(counted[number].tell, tracker, left[number].pop())
    return [each.outcome(tracker) for each in counted]


def ids(recording: Recording) -> set[str]:
    """Return what may clash with another recording: the spans' ids, and those that join."""
    found = {f"{record.span_id}" for record in recording.ended()}
    for record in recording.ended():
        found |= {
            value
            for name, value in record.attributes.items()
            if isinstance(value, str) and name.endswith(("conversation.id", "call.id", ".id"))
        }
    return found


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_recordings_at_once_come_to_the_same_as_alone(seed: int) -> None:
    order = Random(seed)  # noqa: S311 -- no secret
    chosen: list[Recording] = []
    taken: set[str] = set()
    known = recordings(*order.sample(FOLDERS, 3))
    order.shuffle(known)
    for recording in known:
        own = ids(recording)
        if recording.events() and not own & taken:
            chosen.append(recording)
            taken |= own
        if len(chosen) == AT_ONCE:
            break
    events = [recording.events() for recording in chosen]
    alone = [played([each], order)[0] for each in events]

    assert played(events, order) == alone, list(map(str, chosen))
    assert len(chosen) > 1
