"""Weights of `stagnation` from recordings whose loops are known, and what they would have caught.

The weight of a class of tool steps is its log-likelihood ratio: how much more often it occurs in
loops than in healthy runs. The score of an agent is the sum of its steps' weights, never below zero
(Page's CUSUM, Biometrika 41, 1954); a run aborts when the score of one of its agents reaches a
threshold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from otel_loopguard.backtest.wilson import Rate, rate

STRENGTH = 200.0
"""Steps of loops that the weights in force are worth: with few loops, they change little."""
_FOLDS = 5
"""Parts into which the runs are divided, of which one at a time is held out."""
_AT_LEAST = 4.0
"""Steps of each class that the weights in force are worth at least."""
_MOST = 5.0
"""No single step may say more than this."""


class ClassedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of which it is known what it is, with the class of each tool step."""

    is_loop: bool
    agents: tuple[tuple[str, ...], ...]
    """The classes of each agent's tool steps, in their order."""


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """What aborting at a score would have done."""

    threshold: float
    false_aborts: Rate
    """Healthy runs that reach it."""
    caught: Rate
    """Loops that reach it."""


def fitted_weights(
    runs: Iterable[ClassedRun], start: Mapping[str, float], *, strength: float = STRENGTH
) -> Mapping[str, float]:
    """Return a weight for each class of `start`, rounded to hundredths.

    A weight moves by the logarithm of how many steps of its class the loops have, against how many
    they would have if the weights of `start` were right. Both are taken to be larger by as many as
    `strength` more such steps would have, and by 4 at least: what hardly occurs says little. As
    weights are ratios of shares, all of them may move by a common amount as well. A class that no
    step falls into keeps its weight.
    """
    counts: Mapping[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for run in runs:
        for classes in run.agents:
            counts[run.is_loop].update(classes)
    loops, healthy = counts[True], counts[False]
    every = healthy.total() + 1
    usual = {name: (healthy[name] + 1 / len(start)) / every for name in start}
    shift = math.log(sum(usual[name] * math.exp(weight) for name, weight in start.items()))
    weights: dict[str, float] = {}
    for name, weight in start.items():
        share = usual[name] * math.exp(weight - shift)
        more = max(strength * share, _AT_LEAST)
        moved = math.log((loops[name] + more) / (loops.total() * share + more)) - shift
        seen = loops[name] + healthy[name] > 0
        weights[name] = round(min(_MOST, max(-_MOST, weight + moved)), 2) if seen else weight
    return weights


def highest_score(run: ClassedRun, weights: Mapping[str, float]) -> float:
    """Return the highest score that an agent of the run reaches; classes without a weight are 0."""
    highest = 0.0
    for classes in run.agents:
        score = 0.0
        for name in classes:
            score = max(0.0, score + weights.get(name, 0.0))
            highest = max(highest, score)
    return round(highest, 6)


def held_out_scores(runs: Sequence[ClassedRun], start: Mapping[str, float]) -> list[float]:
    """Return the highest score of each run by weights that were fitted without it.

    Every fifth loop and every fifth healthy run is held out at a time. Weights that are judged by
    the runs they were fitted to look better than they are.
    """
    count = {True: 0, False: 0}
    folds: list[int] = []
    for run in runs:
        folds.append(count[run.is_loop] % _FOLDS)
        count[run.is_loop] += 1
    weights = [
        fitted_weights((run for run, its in zip(runs, folds, strict=True) if its != fold), start)
        for fold in range(_FOLDS)
    ]
    return [highest_score(run, weights[its]) for run, its in zip(runs, folds, strict=True)]


def curve(
    runs: Sequence[ClassedRun], scores: Sequence[float], thresholds: Iterable[float]
) -> tuple[CurvePoint, ...]:
    """Return what aborting at each threshold would have done; `scores` are the runs' highest."""
    loops = [score for run, score in zip(runs, scores, strict=True) if run.is_loop]
    healthy = [score for run, score in zip(runs, scores, strict=True) if not run.is_loop]
    return tuple(
        CurvePoint(
            threshold=threshold,
            false_aborts=rate(_reaching(healthy, threshold), len(healthy)),
            caught=rate(_reaching(loops, threshold), len(loops)),
        )
        for threshold in thresholds
    )


def _reaching(scores: Sequence[float], threshold: float) -> int:
    return sum(score >= threshold for score in scores)
