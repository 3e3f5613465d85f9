"""Weights of `stagnation` fitted to the runs of a backtest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from otel_loopguard.backtest.fit_report import ENOUGH, FitOn, FitReport, FittedClass
from otel_loopguard.backtest.fitting import (
    ClassedRun,
    curve,
    fitted_weights,
    held_out_scores,
    highest_score,
)
from otel_loopguard.backtest.labels import Said
from otel_loopguard.backtest.outcomes import Outcome
from otel_loopguard.detectors._stagnation_classes import WEIGHTS
from otel_loopguard.policy import Policy

THRESHOLDS = tuple(float(score) for score in range(8, 41))
"""Scores that are tried, beside that at which the policy aborts."""


class FitError(ValueError):
    """Recordings that weights cannot be fitted to; the text says what is missing."""


class Fit:
    """Collects runs of which it is known what they are; of each, the classes of its tool steps.

    Args:
        name: what the policy is called.
        policy: the first of those that the runs are played under.
        fit_on: which runs are loops.

    """

    def __init__(self, name: str, policy: Policy, fit_on: FitOn = "labels") -> None:
        self._name = name
        self._start = {**WEIGHTS, **policy.settings.weights}
        line = policy.settings.rules.get("stagnation")
        self._abort = None if line is None else line.abort
        self._fit_on: FitOn = fit_on
        self._names = {name: name for name in WEIGHTS}
        self._runs: list[ClassedRun] = []
        self._left_out = 0
        self._unlabelled: Counter[bool | None] = Counter()

    def add(self, outcome: Outcome, said: Said) -> None:
        """Take in a run of `play_files(..., classify=True)`."""
        is_loop = self._is_loop(said)
        self._unlabelled[said.success] += said.label is None
        if is_loop is None or outcome.classes is None:
            self._left_out += 1
            return
        # Each name once: those of another process come as new texts.
        agents = tuple(tuple([self._names[c] for c in agent]) for agent in outcome.classes)
        self._runs.append(ClassedRun(is_loop=is_loop, agents=agents))

    def report(self) -> FitReport:
        """Fit the weights, and say what they change.

        Raises:
            FitError: there is no loop or no healthy run, or nothing is known of their steps.

        """
        steps = self._counted()
        after = fitted_weights(self._runs, self._start)
        others = {self._abort} - {None, *THRESHOLDS}
        thresholds = sorted({*THRESHOLDS, *(score for score in others if score is not None)})
        before_scores = [highest_score(run, self._start) for run in self._runs]
        loops = sum(run.is_loop for run in self._runs)
        return FitReport(
            policy=self._name,
            fit_on=self._fit_on,
            loops=loops,
            healthy=len(self._runs) - loops,
            left_out=self._left_out,
            enough=loops >= ENOUGH,
            abort=self._abort,
            classes={
                name: FittedClass(
                    before=before,
                    after=after[name],
                    in_loops=steps[True][name],
                    in_healthy=steps[False][name],
                )
                for name, before in self._start.items()
            },
            before=curve(self._runs, before_scores, thresholds),
            after=curve(self._runs, held_out_scores(self._runs, self._start), thresholds),
        )

    def _is_loop(self, said: Said) -> bool | None:
        if said.label is not None:
            return {"loop": True, "no": False, "weak": None}[said.label]
        if said.success is False and self._fit_on == "failed":
            return True
        return False if said.success else None

    def _counted(self) -> Mapping[bool, Counter[str]]:
        """Return how many steps of each class there are in loops, and in healthy runs."""
        steps: Mapping[bool, Counter[str]] = {True: Counter(), False: Counter()}
        for run in self._runs:
            for classes in run.agents:
                steps[run.is_loop].update(classes)
        kinds = {run.is_loop for run in self._runs}
        if True not in kinds:
            raise FitError(self._without_loops())
        if False not in kinds:
            message = (
                "no run is known to be healthy; give runs of steps files a field 'success', or "
                'name some in a file of --labels, as "no"'
            )
            raise FitError(message)
        if not steps[True]:
            message = "the results of the loops' tool steps are not known, so they say nothing"
            raise FitError(message)
        return steps

    def _without_loops(self) -> str:
        if self._fit_on == "failed":
            return (
                "no run is labelled a loop, and none without a label is known to have failed; give "
                "runs of steps files a field 'label' or 'success', or name them in a file of "
                "--labels"
            )
        message = (
            "no run is labelled a loop; give runs of steps files a field 'label', or name them in "
            "a file of --labels"
        )
        if self._unlabelled[True] and self._unlabelled[False]:
            message += "; --fit-on failed takes failed runs for loops, which is a rough guess"
        return message
