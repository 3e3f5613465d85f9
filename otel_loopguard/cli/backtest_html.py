"""A backtest as one HTML page that needs nothing else: no script, no font, no other file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from otel_loopguard.backtest import BacktestReport, FitReport, Group, PolicyReport, RunRow
from otel_loopguard.backtest.fit_report import cautions
from otel_loopguard.cli.backtest_fit import class_rows, fit_heads, fit_rows, fit_title
from otel_loopguard.cli.backtest_plots import (
    fit_curves,
    rule_bars,
    series_names,
    step_histogram,
    trade_off,
)
from otel_loopguard.cli.backtest_style import EXPLANATION, STYLE
from otel_loopguard.cli.backtest_table import (
    RULE_HEADS,
    part_text,
    rate_text,
    rule_cells,
    saved_text,
)
from otel_loopguard.cli.tables import of
from otel_loopguard.version import VERSION

_OPEN = 30
"""Rows of a table that are shown without being asked for."""
_WORDS = frozenset({"class", "file", "policy", "rule", "run", "set"})
"""Heads of columns of words; all others are numbers."""
_NUMBER = ' class="n"'
_GROUP_HEADS = (
    "runs",
    "tripped",
    "warned",
    "false trips",
    "loops caught",
    "precision",
    "median step of the trip",
    "steps saved",
    "tokens saved",
    "cost saved",
)


def html_of(report: BacktestReport) -> str:
    """Return the page."""
    body = "".join(_body(report))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>Backtest</title><style>{STYLE}</style></head><body><main>{body}</main></body>"
        "</html>\n"
    )


def _body(report: BacktestReport) -> Iterator[str]:
    runs = report.policies[0].total.runs
    yield f"<h1>Backtest of {_and(policy.policy for policy in report.policies)}</h1>"
    yield (
        f"<p>{of(runs, 'run')} from {of(report.files, 'file')}; {report.bad_lines:,} of "
        f"{of(report.lines, 'line')} could not be read. otel-loopguard {escape(VERSION)}.</p>"
    )
    yield "<h2>Policies</h2>"
    groups = [([policy.policy], policy.total) for policy in report.policies]
    yield _table(("policy", *_GROUP_HEADS), [[*names, *_cells(g)] for names, g in groups])
    yield EXPLANATION
    yield from _trade_off(report)
    if report.fit is not None:
        yield from _fit(report.fit)
    for policy in report.policies:
        yield from _policy(policy, several=len(report.policies) > 1)


def _trade_off(report: BacktestReport) -> Iterator[str]:
    made = trade_off(report)
    if made is None:
        return
    yield "<h2>False trips against what is caught</h2>"
    chart, caught, numbers = made
    keys = "".join(
        f'<span class="key" style="--c: var(--series-{index % 6})">{_shown(name)}</span>'
        for index, name in enumerate(series_names(report))
    )
    yield f"<figure>{chart}<figcaption>{keys} "
    yield (
        "A curve grows with the number of steps that a run is watched for; the large point at its "
        "end is the whole policy. Up and to the left is better.</figcaption></figure>"
    )
    yield _table(("policy", "false trips", caught), numbers)


def _fit(fit: FitReport) -> Iterator[str]:
    yield f"<h2>{_shown(fit_title(fit))}</h2>"
    keys = "".join(
        f'<span class="{look}" style="--c: var(--series-{index})">{name}</span>'
        for index, (name, look) in enumerate((("before", "key hollow"), ("after", "key")))
    )
    yield f"<figure>{fit_curves(fit)}<figcaption>{keys} A point for each score at which runs might "
    yield "be aborted; the large one is that of the policy. After the fit, each run is judged by "
    yield "weights that were fitted without it. Up and to the left is better.</figcaption></figure>"
    yield "".join(f'<p class="note">{_shown(caution)}</p>' for caution in cautions(fit))
    yield _table(fit_heads(fit), fit_rows(fit))
    yield "<h3>Weights</h3>"
    yield _table(("class", "before", "after", "in loops", "in healthy runs"), class_rows(fit))


def _policy(policy: PolicyReport, *, several: bool) -> Iterator[str]:
    suffix = f", {_shown(policy.policy)}" if several else ""
    legend = '<span class="key" style="--c: var(--bad)">false trips</span>'
    legend += '<span class="key" style="--c: var(--other)">other trips</span>'
    if policy.sets:
        yield f"<h2>Sets{suffix}</h2>"
        yield _table(("set", *_GROUP_HEADS), [[n, *_cells(g)] for n, g in policy.sets.items()])
    if policy.rules:
        yield f"<h2>Rules{suffix}</h2>"
        bars = rule_bars(policy)
        if bars is not None:
            yield f"<figure>{bars}<figcaption>{legend} Trips by the rule that was the first to say "
            yield "abort.</figcaption></figure>"
        rules = [[rule, *rule_cells(counts)] for rule, counts in policy.rules.items()]
        yield _table(("rule", *RULE_HEADS), rules)
    histogram = step_histogram(policy)
    if histogram is not None:
        yield f"<h2>Steps of the trips{suffix}</h2>"
        yield f"<figure>{histogram[0]}<figcaption>{legend}</figcaption></figure>"
        yield _table(("step", "trips", "false trips"), histogram[1])
    if policy.false_trips:
        yield f"<h2>False trips{suffix}</h2>"
        yield _runs(policy.false_trips, policy.total.false_trips.count)
    if policy.missed_loops:
        yield f"<h2>Loops missed{suffix}</h2>"
        yield _runs(policy.missed_loops, policy.total.recall.of - policy.total.recall.count)


def _cells(group: Group) -> list[str]:
    return [
        f"{group.runs:,}",
        part_text(group.tripped, group.runs),
        part_text(group.warned, group.runs),
        rate_text(group.false_trips),
        rate_text(group.recall),
        rate_text(group.precision),
        "-" if group.trip_step_p50 is None else f"{group.trip_step_p50:,}",
        *(saved_text(group, field) for field in ("steps", "tokens", "cost_usd")),
    ]


def _runs(found: Sequence[RunRow], count: int) -> str:
    table = _table(
        ("run", "file", "rule", "step", "of steps", "count", "threshold"),
        [
            [
                row.run_id,
                row.file if row.line is None else f"{row.file}:{row.line}",
                row.rule or "-",
                "-" if row.step is None else f"{row.step:,}",
                f"{row.steps:,}",
                "-" if row.count is None else f"{row.count:g}",
                "-" if row.threshold is None else f"{row.threshold:g}",
            ]
            for row in found
        ],
    )
    more = "" if count <= len(found) else f"<p>The first {len(found):,} of {count:,}.</p>"
    return more + table


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls where it is too wide; a long one opens when it is asked for."""
    head = "".join(
        f'<th scope="col"{"" if name in _WORDS else _NUMBER}>{escape(name)}</th>' for name in heads
    )
    rows = "".join(f"<tr>{''.join(map(_cell, heads, line))}</tr>" for line in lines)
    table = (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )
    if len(lines) <= _OPEN:
        return table
    return f"<details><summary>{len(lines):,} rows</summary>{table}</details>"


def _cell(head: str, text: str) -> str:
    """Return a cell that breaks nowhere, but for a path after `/` and a rate before its share."""
    if head == "file":
        path = "/</span><wbr><span>".join(_shown(text).split("/"))
        return f'<td class="path"><span>{path}</span></td>'
    if head in _WORDS:
        return f"<td>{_shown(text)}</td>"
    count, bracket, share = text.partition(" (")
    break_here = " (" if " of " in count else "\N{NO-BREAK SPACE}("
    parts = [part.replace(" ", "\N{NO-BREAK SPACE}") for part in (count, share)]
    return f"<td{_NUMBER}>{escape((break_here if bracket else '').join(parts))}</td>"


def _shown(text: str) -> str:
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _and(names: Iterable[str]) -> str:
    return ", ".join(f"<em>{_shown(name)}</em>" for name in names)
