"""What a run cost, and what of that stopping at the first trip would have saved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from otel_loopguard.detectors import COUNTED
from otel_loopguard.pricing import Pricing, Usage, count_of, dollars_of, input_tokens_of, pricing_of
from otel_loopguard.replay.results import Saved
from otel_loopguard.steps import Step


class Savings:
    """Adds up the steps that start after a run's first trip, the step refused by it included.

    What was already under way then is not saved: it ends and costs what it costs. Tokens and prices
    are read as the engine reads them under this `usage`, with an estimate by model where nothing
    else is known.
    """

    def __init__(self, usage: Usage) -> None:
        self.tripped = False
        self._usage = usage
        self._pricing: Pricing | None = None
        """Made when it is needed: the table of estimates takes its time to load."""
        self._metered = 0
        """How many steps have reported what they used."""
        self._metered_at: dict[Hashable, int] = {}
        """How many had when each agent that is at work began."""
        self._steps = self._tokens = 0
        self._all_usd: float | None = None
        self._saved_usd: float | None = None
        """`None` while the cost of no step is known."""
        self._unpriced = False
        """A model call that is saved has no price."""
        self._spared: set[Hashable] = set()

    def started(self, key: Hashable, step: Step) -> None:
        """Take in a step that starts, after its own verdict; `key` finds it again at its end."""
        if step.kind == "agent" and step.agent_id is not None:
            self._metered_at[key] = self._metered
        if self.tripped:
            self._spared.add(key)
            self._steps += step.kind in COUNTED and not step.spanless

    def ended(self, key: Hashable, step: Step) -> None:
        """Take in what a step cost."""
        tokens, cost_usd = self._used_by(step, self._metered_at.pop(key, 0))
        is_saved = key in self._spared
        self._spared.discard(key)
        if cost_usd is not None:
            self._all_usd = cost_usd + (self._all_usd or 0.0)
        if not is_saved:
            return
        self._tokens += tokens
        if cost_usd is not None:
            self._saved_usd = cost_usd + (self._saved_usd or 0.0)
        elif step.kind == "llm":
            self._unpriced = True

    def total(self) -> Saved:
        """Return the sums."""
        cost_usd = round(self._saved_usd or 0.0, 9)
        return Saved(steps=self._steps, tokens=self._tokens, cost_usd=cost_usd)

    @property
    def all_usd(self) -> float | None:
        """What all steps cost; `None` where the cost of none is known."""
        return self._all_usd

    @property
    def saved_usd(self) -> float | None:
        """What is saved; `None` where it is something, but the cost of none of it is known."""
        if self._all_usd is None or (self._saved_usd is None and self._unpriced):
            return None
        return round(self._saved_usd or 0.0, 9)

    def _used_by(self, step: Step, metered: int) -> tuple[int, float | None]:
        """Return the tokens and the dollars of a step.

        What an agent reports is the sum of what is below it: it counts where nothing has reported
        any since it began, when `metered` steps had.
        """
        if step.kind == "tool":
            tokens = count_of(step.input_tokens) + count_of(step.output_tokens)
            return tokens, dollars_of(step.cost_usd)
        if step.kind == "agent" and self._metered != metered:
            return 0, None
        tokens = (input_tokens_of(step, self._usage) or 0) + count_of(step.output_tokens)
        cost_usd = self._price_of(step)
        self._metered += bool(tokens) or cost_usd is not None
        return tokens, cost_usd

    def _price_of(self, step: Step) -> float | None:
        own = dollars_of(step.cost_usd)
        if own is not None:
            return own
        if (step.input_tokens, step.output_tokens, step.cache_read_tokens) == (None, None, None):
            return None
        if self._pricing is None:
            self._pricing = pricing_of(self._usage, estimate=True)
        return self._pricing.cost_of(step)


def known_sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum of what is known; `None` where nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None
