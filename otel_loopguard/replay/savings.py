"""What stopping at the first trip would have saved."""

from __future__ import annotations

from collections.abc import Hashable

from otel_loopguard.detectors import COUNTED
from otel_loopguard.replay.results import Saved
from otel_loopguard.steps import Step


class Savings:
    """Adds up the steps that start after a run's first trip, the step refused by it included.

    What was already under way then is not saved: it ends and costs what it costs.
    """

    def __init__(self) -> None:
        self.tripped = False
        self._steps = self._tokens = 0
        self._cost_usd = 0.0
        self._spared: set[Hashable] = set()

    def started(self, key: Hashable, step: Step) -> None:
        """Take in a step that starts, after its own verdict; `key` finds it again at its end."""
        if self.tripped:
            self._spared.add(key)
            self._steps += step.kind in COUNTED

    def ended(self, key: Hashable, step: Step) -> None:
        """Take in what a step cost."""
        if key in self._spared:
            self._spared.remove(key)
            self._tokens += (step.input_tokens or 0) + (step.output_tokens or 0)
            self._cost_usd += step.cost_usd or 0.0

    def total(self) -> Saved:
        """Return the sums."""
        return Saved(steps=self._steps, tokens=self._tokens, cost_usd=round(self._cost_usd, 9))
