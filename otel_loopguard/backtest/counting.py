"""A backtest while it goes on: outcomes in, the report out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from otel_loopguard.backtest.fits import Fit
from otel_loopguard.backtest.labels import Said, said_of
from otel_loopguard.backtest.outcomes import Outcome
from otel_loopguard.backtest.report import BacktestReport, PolicyReport, RuleCount, RunRow
from otel_loopguard.backtest.suggestions import Suggestions
from otel_loopguard.backtest.tally import Tally
from otel_loopguard.replay import LineCounts

ROWS = 1_000
"""Runs that are listed one by one."""
_IDS = 100

Grouping: TypeAlias = Literal["source", "file", "agent", "model"]
"""What makes runs a set: the line's `source` (the file where it says none), the file, ..."""

_UNNAMED = "(unnamed)"


class Backtest:
    """Counts the outcomes of runs under each policy.

    Args:
        policies: their names, in the order of the numbers in the outcomes.
        labels: what is said of runs, by run id.
        by: what makes runs a set.
        suggestions: told what the runs used, if given. The policies have no say in it.
        fit: told what the runs' steps are to `stagnation` under the first policy, if given.

    """

    def __init__(
        self,
        policies: Sequence[str],
        labels: Mapping[str, Said] | None = None,
        by: Grouping = "source",
        suggestions: Suggestions | None = None,
        fit: Fit | None = None,
    ) -> None:
        self._labels = labels or {}
        self._unused = dict.fromkeys(self._labels)
        self._by: Grouping = by
        self._listeners = [taker for taker in (suggestions, fit) if taker is not None]
        self._counts = [_PolicyCount(name) for name in policies]

    def add(self, outcome: Outcome) -> RunRow:
        """Count a run, and return what there is to say about it."""
        said = said_of(outcome, self._labels)
        self._unused.pop(outcome.run_id, None)
        if outcome.policy == 0:
            for taker in self._listeners:
                taker.add(outcome, said)
        return self._counts[outcome.policy].add(outcome, said, self._set_of(outcome))

    def report(self, files: Sequence[LineCounts]) -> BacktestReport:
        """Return what was found so far; `files` are those that were read."""
        return BacktestReport(
            files=len(files),
            lines=sum(file.lines for file in files),
            bad_lines=sum(file.bad for file in files),
            unclear_lines=sum(file.unclear for file in files),
            unused_labels=tuple(self._unused)[:_IDS],
            policies=tuple(count.report() for count in self._counts),
        )

    def _set_of(self, outcome: Outcome) -> str:
        names: Mapping[Grouping, str] = {
            "source": outcome.origin or outcome.file,
            "file": outcome.file,
            "agent": outcome.agent,
            "model": outcome.model,
        }
        return names[self._by] or _UNNAMED


class _PolicyCount:
    """Counts the outcomes of runs under one policy."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._total = Tally()
        self._sets: dict[str, Tally] = {}
        self._rules: dict[str, Counter[str]] = {}
        self._steps: dict[str, Counter[int]] = {
            which: Counter() for which in ("all", "false", "loop")
        }
        self._false: list[RunRow] = []
        self._missed: list[RunRow] = []

    def add(self, outcome: Outcome, said: Said, set_name: str) -> RunRow:
        row = self._row(outcome, said, set_name)
        for tally in (self._total, self._sets.setdefault(set_name, Tally())):
            tally.add(outcome, said)
        for rule in outcome.warned:
            self._rules.setdefault(rule, Counter())["warns"] += 1
        for rule in outcome.aborted:
            self._rules.setdefault(rule, Counter())["aborts"] += 1
        if outcome.trip is not None:
            counts, step = self._rules[outcome.trip.rule], outcome.trip.step
            kinds = ["all", *(["false"] if said.success else [])]
            kinds += ["loop"] if said.label == "loop" else []
            for kind in kinds:
                counts[kind] += 1
                self._steps[kind][step] += 1
            if said.success and len(self._false) < ROWS:
                self._false.append(row)
        elif said.label == "loop" and len(self._missed) < ROWS:
            self._missed.append(row)
        return row

    def report(self) -> PolicyReport:
        ranked = sorted(self._rules, key=lambda rule: (-self._rules[rule]["all"], rule))
        return PolicyReport(
            policy=self._name,
            total=self._total.group(),
            sets={name: self._sets[name].group() for name in sorted(self._sets)},
            rules={rule: _rule_count(self._rules[rule]) for rule in ranked},
            trip_steps=dict(sorted(self._steps["all"].items())),
            false_trip_steps=dict(sorted(self._steps["false"].items())),
            loop_trip_steps=dict(sorted(self._steps["loop"].items())),
            false_trips=tuple(self._false),
            missed_loops=tuple(self._missed),
        )

    def _row(self, outcome: Outcome, said: Said, set_name: str) -> RunRow:
        trip = outcome.trip
        return RunRow(
            policy=self._name,
            run_id=outcome.run_id,
            file=outcome.file,
            line=outcome.line,
            set=set_name,
            agent=outcome.agent,
            success=said.success,
            label=said.label,
            steps=outcome.steps,
            rule=None if trip is None else trip.rule,
            step=None if trip is None else trip.step,
            phase=None if trip is None else trip.phase,
            count=None if trip is None else trip.count,
            threshold=None if trip is None else trip.threshold,
            rules=outcome.aborted,
            saved_steps=outcome.saved.steps,
            saved_tokens=outcome.saved.tokens,
            saved_cost_usd=outcome.saved_cost_usd,
        )


def _rule_count(counts: Counter[str]) -> RuleCount:
    return RuleCount(
        trips=counts["all"],
        false_trips=counts["false"],
        loops=counts["loop"],
        aborts=counts["aborts"],
        warns=counts["warns"],
    )
