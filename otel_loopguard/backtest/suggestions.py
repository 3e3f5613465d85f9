"""Budgets from recorded runs: what good runs use, and some more, as a policy file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from otel_loopguard.backtest.labels import Said
from otel_loopguard.backtest.outcomes import Outcome

FACTOR = 1.5
"""A budget is this times the 95th percentile."""
ENOUGH = 20
"""Runs that an agent must have for budgets of its own."""
HEADING = "# Budgets suggested by `otel-loopguard backtest --suggest`"
"""How a file of suggestions begins."""

_MEASURES: Mapping[str, str] = {
    "max_steps": "steps",
    "max_llm_calls": "model_calls",
    "max_tool_calls": "tool_calls",
    "max_total_tokens": "tokens",
    "max_duration_s": "duration_s",
}
"""The option that each figure of a run is held against."""
_SPECIAL = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})


class Budget(msgspec.Struct, frozen=True):
    """What runs use of one thing, and what they should be allowed."""

    option: str
    runs: int
    p50: float
    p95: float
    most: float
    limit: int
    """`FACTOR` times `p95`, rounded up; 0 if that is nothing."""


class Suggestions:
    """Collects what runs use, by agent: of the successful ones, or of all if none is known to be.

    Of each run a few numbers are kept.
    """

    def __init__(self) -> None:
        self._successful: dict[str, list[Sequence[float]]] = {}
        self._all: dict[str, list[Sequence[float]]] = {}

    def add(self, outcome: Outcome, said: Said) -> None:
        """Take in a run; one that is labelled a loop is passed over."""
        if said.label == "loop":
            return
        used = tuple(getattr(outcome, field) for field in _MEASURES.values())
        if said.success:
            self._successful.setdefault(outcome.agent, []).append(used)
            self._all.clear()
        elif not self._successful:
            self._all.setdefault(outcome.agent, []).append(used)

    def policy_text(self) -> str:
        """Return the text of a policy file with the budgets."""
        by_agent = self._successful or self._all
        return "\n".join(_lines(by_agent, successful=bool(self._successful))) + "\n"


def budgets(used: Sequence[Sequence[float]]) -> list[Budget]:
    """Return the budgets for runs that used that much of each thing, in the options' order."""
    return [
        _budget(option, sorted(run[place] for run in used))
        for place, option in enumerate(_MEASURES)
    ]


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of the ordered values that at least this share of them do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def _budget(option: str, ordered: Sequence[float]) -> Budget:
    p95 = percentile(ordered, 0.95)
    limit = math.ceil(round(FACTOR * p95, 6))
    return Budget(option, len(ordered), percentile(ordered, 0.5), p95, ordered[-1], limit)


def _lines(by_agent: Mapping[str, list[Sequence[float]]], *, successful: bool) -> Iterator[str]:
    runs = [used for group in by_agent.values() for used in group]
    which = "successful runs" if successful else "runs"
    yield f"{HEADING} from {len(runs):,} {which}."
    yield f"# Each is {FACTOR:g} x p95, rounded up; p95 is what 95 of 100 runs do not exceed."
    if not successful:
        yield "# Success is not known of any run: failed runs and runaways are among them. Compare"
        yield "# p95 with p50 before you use these."
    if not runs:
        yield "# There is no run to take a budget from."
        return
    named = {
        agent: group for agent, group in sorted(by_agent.items()) if agent and len(group) >= ENOUGH
    }
    if len(by_agent) == 1 or not named:
        if len(by_agent) > 1:
            yield f"# No agent has {ENOUGH} runs, so all {len(by_agent):,} were put together."
        yield from ("", "[limits]", *_limits(runs))
        return
    for agent, group in sorted(by_agent.items()):
        if agent not in named:
            who = f"the agent {_quoted(agent)}" if agent else "runs that name no agent"
            yield f"# Left out: {who}, {len(group):,} of {ENOUGH} runs."
    for agent, group in named.items():
        yield from ("", f"[agents.{_quoted(agent.translate(_SPECIAL))}.limits]", *_limits(group))


def _limits(used: Sequence[Sequence[float]]) -> Iterator[str]:
    for budget in budgets(used):
        if not budget.most:
            yield f"# {budget.option}: none of {budget.runs:,} runs recorded any"
            continue
        figures = (
            f"n = {budget.runs:,}, p50 = {_number(budget.p50)}, p95 = {_number(budget.p95)}, "
            f"max = {_number(budget.most)}, factor {FACTOR:g}"
        )
        if budget.limit:
            yield f"{budget.option} = {budget.limit}  # {figures}"
        else:
            yield f"# {budget.option}: too few runs recorded any ({figures})"


def _number(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _quoted(name: str) -> str:
    """Return a TOML string."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
