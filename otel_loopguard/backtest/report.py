"""What a backtest found, as data. Its fields are those of the JSON output, in their order."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from otel_loopguard.backtest.fit_report import FitReport
from otel_loopguard.backtest.labels import Label
from otel_loopguard.backtest.wilson import Rate
from otel_loopguard.decisions import Phase


class SavedShare(msgspec.Struct, frozen=True, kw_only=True):
    """What started after the first trip of the runs that tripped, and its share of everything.

    A share is from 0 to 1, and `None` where there was nothing. Dollars are `None` where the cost of
    none of it is known.
    """

    steps: int
    steps_share: float | None
    tokens: int
    tokens_share: float | None
    cost_usd: float | None
    cost_share: float | None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs under one policy."""

    runs: int
    succeeded: int
    failed: int
    success_unknown: int
    labels: Mapping[Label, int]
    """How many runs have each label."""
    steps: int
    tokens: int
    cost_usd: float | None
    """US dollars; `None` where the cost of no step is known."""
    tripped: int
    """Runs that would have been stopped."""
    warned: int
    """Runs in which a rule warned, tripped or not."""
    saved: SavedShare
    false_trips: Rate
    """Successful runs that tripped, of the successful ones."""
    false_warnings: Rate
    """Successful runs in which a rule warned, of the successful ones."""
    failed_tripped: Rate
    """Failed runs that tripped, of the failed ones."""
    recall: Rate
    """Runs labelled `loop` that tripped, of those labelled so."""
    precision: Rate
    """Runs labelled `loop` that tripped, of the tripped runs of which it is known whether they
    should: labelled `loop` or `no`, or successful without a label."""
    trip_step_p50: int | None
    """The step of the trip that half of the tripped runs had reached by then."""


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule did."""

    trips: int
    """Runs that it was the first to stop."""
    false_trips: int
    """Successful ones of these."""
    loops: int
    """Those of these that are labelled `loop`."""
    aborts: int
    """Runs that it would have stopped, first or not."""
    warns: int
    """Runs in which it warned."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run that one may want to look at."""

    policy: str
    run_id: str
    file: str
    line: int | None
    set: str
    agent: str
    success: bool | None
    label: Label | None
    steps: int
    rule: str | None
    """The rule that stopped it; `None` if none did, as for `step`, `phase` and the rest."""
    step: int | None
    phase: Phase | None
    count: float | None
    threshold: float | None
    rules: tuple[str, ...]
    """All rules that would have stopped it."""
    saved_steps: int
    saved_tokens: int
    saved_cost_usd: float | None
    """As in `SavedShare`."""


class PolicyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy did."""

    policy: str
    total: Group
    sets: Mapping[str, Group]
    rules: Mapping[str, RuleCount]
    """The rules that spoke, the one with the most trips first."""
    trip_steps: Mapping[int, int]
    """How many runs tripped at each step."""
    false_trip_steps: Mapping[int, int]
    """How many of these were successful."""
    loop_trip_steps: Mapping[int, int]
    """How many of these are labelled `loop`."""
    false_trips: tuple[RunRow, ...]
    """The first thousand."""
    missed_loops: tuple[RunRow, ...]
    """The first thousand runs labelled `loop` that did not trip."""


class BacktestReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a backtest found."""

    files: int
    lines: int
    """Lines that hold anything."""
    bad_lines: int
    unclear_lines: int
    """Lines that were read, but for what they say of the run's success or its label."""
    unused_labels: tuple[str, ...]
    """Ids in the file of labels that no run has, the first hundred."""
    policies: tuple[PolicyReport, ...]
    fit: FitReport | None = None
    """What fitted weights of `stagnation` change; not in the output unless they are asked for."""
