"""A backtest as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from otel_loopguard.backtest import BacktestReport, Group, PolicyReport, Rate, RuleCount, RunRow
from otel_loopguard.cli.backtest_fit import print_fit
from otel_loopguard.cli.tables import dollars, new_table, print_table, printable

SHOWN = 10
"""Runs of a kind that are shown for each policy."""
RULE_HEADS = ("trips", "false trips", "loops caught", "aborts", "warns")
"""Heads of the figures of a rule, as they are called in the JSON output."""


def print_report(report: BacktestReport) -> None:
    """Print what each policy did: by set, by rule, and the runs that one should look at."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not any(policy.total.runs for policy in report.policies):
        bad = f": {report.bad_lines:,} of {report.lines:,} lines could not be read"
        console.print(f"No runs found{bad if report.bad_lines else ''}.", soft_wrap=True)
        return
    _print_groups(console, report.policies)
    _print_rules(console, report.policies)
    for policy in report.policies:
        _print_runs(console, policy, "false trip", policy.false_trips)
        _print_runs(console, policy, "missed loop", policy.missed_loops)
    if report.fit is not None:
        print_fit(console, report.fit)
    for note in _notes(report):
        console.print()
        console.print(Text(note, style="yellow"), soft_wrap=True)


def _print_groups(console: Console, policies: Sequence[PolicyReport]) -> None:
    """Print a row for each policy and set, with the columns that say something."""
    groups = [group for policy in policies for group in (policy.total, *policy.sets.values())]
    table = new_table()
    table.add_column("policy", overflow="fold")
    table.add_column("set", overflow="fold")
    for name in ("runs", "tripped", "warned"):
        table.add_column(name, justify="right", no_wrap=True)
    rates = [
        (name, field)
        for name, field in (
            ("false trips", "false_trips"),
            ("loops caught", "recall"),
            ("precision", "precision"),
        )
        if any(getattr(group, field).of for group in groups)
    ]
    for name, _ in rates:
        table.add_column(name, justify="right")
    used = {name for name in ("steps", "tokens") if any(getattr(g, name) for g in groups)}
    if "tokens" in used or any(group.cost_usd for group in groups):
        used.add("cost_usd")  # tokens without a price are worth a dash
    saved = [name for name in ("steps", "tokens", "cost_usd") if name in used]
    for name in saved:
        table.add_column(f"{name.removesuffix('_usd')} saved", justify="right")
    for policy in policies:
        rows = [("all", policy.total)] if len(policy.sets) != 1 else []
        rows += policy.sets.items()
        for place, (name, group) in enumerate(rows):
            table.add_row(
                printable(policy.policy) if not place else "",
                printable(name),
                f"{group.runs:,}",
                part_text(group.tripped, group.runs),
                part_text(group.warned, group.runs),
                *(rate_text(getattr(group, field)) for _, field in rates),
                *(saved_text(group, field) for field in saved),
                style="bold" if name == "all" and not place else "",
            )
    print_table(console, table)


def _print_rules(console: Console, policies: Sequence[PolicyReport]) -> None:
    if not any(policy.rules for policy in policies):
        return
    table = new_table()
    for name in ("policy", "rule"):
        table.add_column(name, overflow="fold")
    for name in RULE_HEADS:
        table.add_column(name, justify="right")
    for policy in policies:
        for place, (rule, counts) in enumerate(policy.rules.items()):
            table.add_row("" if place else printable(policy.policy), rule, *rule_cells(counts))
    console.print()
    print_table(console, table)


def _print_runs(console: Console, policy: PolicyReport, what: str, rows: Sequence[RunRow]) -> None:
    if not rows:
        return
    console.print()
    for row in rows[:SHOWN]:
        found = "" if row.rule is None else f", {row.rule} at step {row.step:,}"
        place = row.file if row.line is None else f"{row.file}:{row.line}"
        text = f"{policy.policy}: {what}: {row.run_id} ({place}){found} of {row.steps:,}"
        text += " steps" if row.rule is None else ""
        console.print(printable(text), soft_wrap=True)
    if len(rows) > SHOWN:
        more = f"{len(rows) - SHOWN:,} more: see --details, --json or --html"
        console.print(printable(f"{policy.policy}: {what}: {more}"), soft_wrap=True)


def _notes(report: BacktestReport) -> Iterator[str]:
    """Say what could not be judged, and why."""
    total = report.policies[0].total
    if not total.succeeded:
        yield (
            "No run is known to have succeeded, so false trips cannot be counted: give runs of "
            "steps files a field 'success', or name them in a file of --labels."
        )
    if report.unused_labels:
        ids = ", ".join(report.unused_labels[:3])
        more = "" if len(report.unused_labels) <= 3 else ", ..."  # noqa: PLR2004 -- as above
        yield printable(f"Labels of runs that were not read: {ids}{more}")


def rule_cells(counts: RuleCount) -> Sequence[str]:
    """Return what one rule did, under `RULE_HEADS`."""
    figures = (counts.trips, counts.false_trips, counts.loops, counts.aborts, counts.warns)
    return [f"{figure:,}" for figure in figures]


def part_text(count: int, of: int) -> str:
    """Return a part and its share as `63 (8.32 %)`."""
    return f"{count:,} ({percent(count / of)})" if of else f"{count:,}"


def rate_text(rate: Rate) -> str:
    """Return a rate as `3 of 498 (0.6 %, 0.2 to 1.76 %)`; the last two are the 95 % interval."""
    if rate.share is None or rate.low is None or rate.high is None:
        return "-"
    interval = f"{_digits(rate.low)} to {percent(rate.high)}"
    return f"{rate.count:,} of {rate.of:,} ({percent(rate.share)}, {interval})"


def saved_text(group: Group, field: str) -> str:
    """Return what was saved of `steps`, `tokens` or `cost_usd`, and its share; `-` for unknown."""
    saved = group.saved
    if field == "cost_usd":
        if saved.cost_usd is None:
            return "-"
        amount, share = dollars(saved.cost_usd), saved.cost_share
        return amount if share is None else f"{amount} ({percent(share)})"
    if field == "tokens":
        amount, share = f"{saved.tokens:,}", saved.tokens_share
    else:
        amount, share = f"{saved.steps:,}", saved.steps_share
    return "-" if share is None else f"{amount} ({percent(share)})"


def percent(share: float) -> str:
    """Return a share of 0 to 1 in per cent, small ones with more digits."""
    return f"{_digits(share)} %"


def _digits(share: float) -> str:
    if share in (0, 1):
        return f"{share * 100:g}"
    if share < 0.0001:  # noqa: PLR2004 -- what would be shown as 0.00
        return f"{share * 100:.1g}"
    text = f"{share * 100:.{2 if share < 0.1 else 1}f}"  # noqa: PLR2004 -- ten per cent
    return text.rstrip("0").rstrip(".")
