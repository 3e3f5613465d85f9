"""Spans, played through the run tracker as `replay` does, and what they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from otel_loopguard.dialects import Dialect, read_step
from otel_loopguard.doctor.sightings import RunsSeen, Seen, SeenTwice, Sighting
from otel_loopguard.doctor.tally import Tally
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.policy import Policy
from otel_loopguard.replay.span_order import SpanMoment, in_order
from otel_loopguard.runs import Run
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

_Key = tuple[int, int]


class Examination:
    """What the spans of some files, or of a process, show.

    Args:
        dialects: how spans are read; those installed and built in if `None`.

    """

    def __init__(self, dialects: Iterable[Dialect] | None = None) -> None:
        self.dialects = chosen(dialects)
        self._tallies: dict[str, Tally] = {}
        self._runs: Counter[str] = Counter()
        self._twice: Counter[tuple[str, str]] = Counter()
        self._spans = 0
        self._is_live = False

    def take(self, sightings: Iterable[Sighting]) -> None:
        """Take in spans that belong together, in any order: those of one file."""
        by_key = {_key(each.record): each for each in sightings}
        played = _Played(by_key, self)
        for moment in in_order(each.record for each in by_key.values()):
            played.hear(moment)
        self._runs.update(played.ways())
        self._spans += len(by_key)
        self._is_live = self._is_live or any(each.at_start is not None for each in by_key.values())

    def seen(self) -> Seen:
        """Return what they show."""
        return Seen(
            spans=self._spans,
            is_live=self._is_live,
            scopes=tuple(tally.seen() for tally in self._tallies.values()),
            runs=RunsSeen(**self._runs),
            seen_twice=tuple(
                SeenTwice(counted=counted, also=also, calls=calls)
                for (counted, also), calls in self._twice.most_common()
            ),
        )

    def tally(self, scope: str) -> Tally:
        """Return the counts of a scope."""
        return self._tallies.setdefault(scope, Tally(scope, self.dialects))

    def count_twice(self, counted: str, also: str) -> None:
        """Take note of a model call that two spans show."""
        self._twice[counted, also] += 1


class _Played:
    """The spans of one file, while they are played."""

    def __init__(self, sightings: Mapping[_Key, Sighting], examination: Examination) -> None:
        self._sightings = sightings
        self._examination = examination
        self._tracker = RunTracker(Policy.none(), dialects=examination.dialects)
        self._scopes = {record.record.span_id: record.record.scope for record in sightings.values()}
        self._hanging = {
            each.record.span_id
            for each in sightings.values()
            if each.record.parent_id is not None and each.record.parent_id not in self._scopes
        }
        """Spans whose parents are of this process, or of another, and not among them."""
        self._runs: dict[Run, None] = {}
        self._blocks = {at.run for each in sightings.values() if (at := each.at_start) is not None}

    def hear(self, moment: SpanMoment) -> None:
        """Let a span start or end."""
        span = moment.span
        sighting = self._sightings[_key(span)]
        if moment.is_end:
            verdict = self._tracker.ended(span)
        else:
            run = "" if sighting.at_start is None else sighting.at_start.run
            verdict = self._tracker.started(span, None, partial(_named, run))
        if verdict is not None:
            self._runs[verdict.run] = None
            self._take_requested(verdict)
        if moment.is_end or span.ended_ns is None:
            self._take(sighting, span, verdict)

    def ways(self) -> Iterable[str]:
        """Yield what opened each run."""
        for run in self._runs:
            yield "guarded_run" if run.id in self._blocks else self._way(run)

    def _way(self, run: Run) -> str:
        root = run.root
        if run.kind == "agent":
            return "agent"
        if run.kind != "root" or root is None:
            return "ids"
        if root.stands_in or root.span_id in self._hanging:
            return "unseen_top_span"
        return "top_span" if root.kind is None else "single_calls"

    def _take(self, sighting: Sighting, span: SpanRecord, verdict: Verdict | None) -> None:
        node = self._tracker.runs.spans.get(span.span_id)
        whole = None if node is None else node.part_of
        step = read_step(span, self._examination.dialects)
        counted = step if verdict is None or verdict.step is None else verdict.step
        if whole is not None and step is not None and step.kind == "llm":
            self._examination.count_twice(self._scopes.get(whole.span_id, ""), span.scope)
        tally = self._examination.tally(span.scope)
        tally.take(sighting, step and counted, is_part=whole is not None)

    def _take_requested(self, verdict: Verdict) -> None:
        for steps, is_answer in ((verdict.called, False), (verdict.answered, True)):
            for step in steps:
                scope = "" if step.span is None else self._scopes.get(step.span.span_id, "")
                self._examination.tally(scope).take_requested(step, is_answer=is_answer)


def _named(run: str) -> str | None:
    return run or None


def _key(record: SpanRecord) -> _Key:
    return record.trace_id, record.span_id


def examine(sightings: Iterable[Sighting], dialects: Iterable[Dialect] | None = None) -> Seen:
    """Return what spans that belong together show; `dialects` are those of `Examination`."""
    examination = Examination(dialects)
    examination.take(sightings)
    return examination.seen()
