"""Outcomes, added up. What is kept does not grow with the number of runs."""

from __future__ import annotations

import math
from collections import Counter

from otel_loopguard.backtest.labels import Label, Said
from otel_loopguard.backtest.outcomes import Outcome
from otel_loopguard.backtest.report import Group, SavedShare
from otel_loopguard.backtest.wilson import rate
from otel_loopguard.replay.savings import known_sum


class Tally:
    """Adds up some runs under one policy."""

    def __init__(self) -> None:
        self._runs: Counter[bool | None] = Counter()
        self._tripped: Counter[bool | None] = Counter()
        self._warned: Counter[bool | None] = Counter()
        self._labels: Counter[Label | None] = Counter()
        self._caught = self._wrong = 0
        self._steps = self._tokens = self._saved_steps = self._saved_tokens = 0
        self._cost_usd: float | None = None
        self._saved_usd: float | None = None
        self._unpriced = False
        """There is a tripped run of which it is not known what is saved."""
        self._trip_steps: Counter[int] = Counter()

    def add(self, outcome: Outcome, said: Said) -> None:
        """Count a run."""
        self._runs[said.success] += 1
        self._labels[said.label] += 1
        self._warned[said.success] += bool(outcome.warned)
        self._steps += outcome.steps
        self._tokens += outcome.tokens
        self._cost_usd = known_sum((self._cost_usd, outcome.cost_usd))
        if outcome.trip is None:
            return
        self._tripped[said.success] += 1
        self._trip_steps[outcome.trip.step] += 1
        self._saved_steps += outcome.saved.steps
        self._saved_tokens += outcome.saved.tokens
        self._saved_usd = known_sum((self._saved_usd, outcome.saved_cost_usd))
        self._unpriced |= outcome.saved_cost_usd is None
        self._caught += said.label == "loop"
        self._wrong += said.label == "no" or (said.label is None and said.success is True)

    def group(self) -> Group:
        """Return the sums."""
        labels: tuple[Label, ...] = ("loop", "weak", "no")
        saved_usd = self._saved()
        return Group(
            runs=self._runs.total(),
            succeeded=self._runs[True],
            failed=self._runs[False],
            success_unknown=self._runs[None],
            labels={label: self._labels[label] for label in labels},
            steps=self._steps,
            tokens=self._tokens,
            cost_usd=None if self._cost_usd is None else round(self._cost_usd, 9),
            tripped=self._tripped.total(),
            warned=self._warned.total(),
            saved=SavedShare(
                steps=self._saved_steps,
                steps_share=_share(self._saved_steps, self._steps),
                tokens=self._saved_tokens,
                tokens_share=_share(self._saved_tokens, self._tokens),
                cost_usd=saved_usd,
                cost_share=_share(saved_usd, self._cost_usd),
            ),
            false_trips=rate(self._tripped[True], self._runs[True]),
            false_warnings=rate(self._warned[True], self._runs[True]),
            failed_tripped=rate(self._tripped[False], self._runs[False]),
            recall=rate(self._caught, self._labels["loop"]),
            precision=rate(self._caught, self._caught + self._wrong),
            trip_step_p50=median(self._trip_steps),
        )

    def _saved(self) -> float | None:
        """Return the dollars saved; none were where no run tripped, if there is any cost at all."""
        if self._saved_usd is not None:
            return round(self._saved_usd, 9)
        return None if self._unpriced or self._cost_usd is None else 0.0


def median(counts: Counter[int]) -> int | None:
    """Return the value that half of the counted ones have reached; `None` if none is counted."""
    half, reached = math.ceil(counts.total() / 2), 0
    for value in sorted(counts):
        reached += counts[value]
        if reached >= half:
            return value
    return None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if whole and part is not None else None
