"""The same error again and again, whatever was tried."""

from __future__ import annotations

from math import ceil, inf
from typing import ClassVar, NamedTuple, TypeAlias

from otel_loopguard.detectors._base import REMEMBERED, Facts, Finding, Moment, Reach, judge
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind

_Key: TypeAlias = tuple[StepKind, str, str]
"""Kind, agent, and name of the tool or model."""


class _Row(NamedTuple):
    """Equal errors in a row."""

    error: int
    length: int = 1
    call: int | None = None
    """The last call."""
    alike: int = 1
    """How many of the last calls were equal."""
    batch: int | None = None
    """The response that asked for the last call."""
    started: int = 0
    """How many steps had started when the last error was known."""


class RepeatedError:
    """The same error again and again, whatever was tried.

    What it sees
        For each agent and each of its tools, or model calls, the same error in a row, arguments
        ignored; and the same error in a row over the tools of the whole run. A tool call of the
        agent that succeeds and brings something new, or that nobody can judge, ends its rows and
        the run's; a model call that succeeds ends those of the agent's model calls. Another error
        restarts a row. Different calls that one response asked for, or that ran side by side, count
        once. Where the calls are equal too, two thirds of the abort threshold, rounded up, are
        enough: 4 of 6.
    Why it matters
        New arguments against the same wall. On 21,365 recorded runs six in a row came up in 0.12 %
        of 1,732 successful ones, three in 1.4 %.
    What it does not see
        Errors whose message changes in more than what changes by nature, and those that the tool
        reports as a success (`error_patterns`).
    """

    rule: ClassVar[str] = "repeated_error"
    reason: ClassVar[str] = "REPEATED_ERROR_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("llm", "tool"))
    reach: ClassVar[Reach] = "run"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    on_news: bool = False

    __slots__ = ("_lowest", "_of_run", "_rows", "_thresholds")

    def __init__(self, thresholds: Thresholds, lowest: float) -> None:
        self._thresholds = thresholds
        self._lowest = lowest
        self._rows: dict[_Key, _Row] = {}
        self._of_run: _Row | None = None

    @classmethod
    def of(cls, settings: Settings, /) -> RepeatedError | None:
        """Make it if the rule can speak."""
        lowest = settings.lowest(cls.rule)
        return None if lowest == inf else cls(settings.rules.get(cls.rule) or Thresholds(), lowest)

    @property
    def rests(self) -> bool:
        """Whether there is no row that a success could end."""
        return self._of_run is None and not self._rows

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this error in the row of its tool and in that of the run."""
        row = _with(self._rows.get((facts.kind, facts.agent, facts.name)), facts)
        if row is None:
            return None
        of_run = _with(self._of_run, facts) if facts.kind == "tool" else None
        count = row.length if of_run is None else max(row.length, of_run.length)
        found = judge(self.rule, self._thresholds, facts, count, count - 1)
        if found is not None and found.action == "abort":
            return found
        own = self._thresholds if facts.own is None else facts.own.get(self.rule, self._thresholds)
        if own.abort is not None and row.alike >= (enough := ceil(own.abort * 2 / 3)):
            return Finding("abort", row.alike, enough, row.alike - 1)
        return found

    def commit(self, facts: Facts, /) -> None:
        """Add the error to its rows, or end those that a success ends."""
        rows, kind, agent = self._rows, facts.kind, facts.agent
        if facts.failed:
            key = (kind, agent, facts.name)
            row = _with(rows.pop(key, None), facts)
            if row is not None:
                rows[key] = row
            if len(rows) > REMEMBERED:
                del rows[next(iter(rows))]
            if kind == "tool":
                self._of_run = _with(self._of_run, facts)
        elif facts.novel or facts.outcome is None:
            if kind == "tool":
                self._of_run = None
            if rows:
                self._rows = {key: row for key, row in rows.items() if key[:2] != (kind, agent)}


def _with(row: _Row | None, facts: Facts) -> _Row | None:
    error, call, batch = facts.error, facts.call, facts.batch
    if not facts.failed or error is None:
        return None
    if row is None or row.error != error:
        return _Row(error, call=call, batch=batch, started=facts.started)
    same = call is not None and call == row.call
    # Who fails side by side has not been told yet.
    together = 0 < facts.number <= row.started or (batch is not None and batch == row.batch)
    length = row.length if together and not same else row.length + 1
    return _Row(error, length, call, row.alike + 1 if same else 1, batch, facts.started)
