"""What the doctor found, for people: the findings with their remedies, then what was seen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from otel_loopguard.cli.tables import new_table, of, print_table, printable
from otel_loopguard.doctor import Finding, Report, ScopeSeen

_STYLES = {"blind": "bold red", "weak": "yellow", "ok": "green"}
_NO_SCOPE = "(no scope)"
_NO_REMEDY = "not known for this instrumentation"


def print_report(report: Report) -> None:
    """Print the findings, the worst ones first, then the spans of each instrumentation."""
    console = Console(highlight=False, markup=False, emoji=False)
    for finding in report.findings:
        for line in _lines(finding):
            console.print(line, soft_wrap=True)
    console.print()
    _print_spans(console, report)
    _print_steps(console, report)
    console.print(_summary(report), soft_wrap=True)


def _lines(finding: Finding) -> Iterator[Text]:
    style = _STYLES[finding.severity]
    head = Text.assemble((f"{finding.severity:<6}", style), printable(finding.what))
    scopes = ", ".join(scope or _NO_SCOPE for scope in finding.scopes)
    if finding.severity == "ok":
        note = f" ({scopes})" if scopes else ""
        yield head + Text(printable(note))
        if finding.remedy:
            yield _part("set", finding.remedy)
        return
    yield head
    if scopes:
        yield _part("in", scopes)
    yield _part("set", finding.remedy or _NO_REMEDY)
    if finding.means:
        yield _part("means", finding.means)


def _part(name: str, text: str) -> Text:
    return Text.assemble("      ", (f"{name:<6}", "dim"), printable(text))


def _print_spans(console: Console, report: Report) -> None:
    table = new_table()
    table.add_column("instrumentation", overflow="fold")
    for name in ("spans", "model", "tool", "agent", "twice", "other"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("recognised by", overflow="fold")
    for scope in report.seen.scopes:
        counts = (
            scope.spans,
            scope.models.calls,
            scope.tools.calls,
            scope.agents.spans,
            scope.parts,
            scope.others + scope.other_steps,
        )
        name, how = printable(scope.scope or _NO_SCOPE), _recognised(scope)
        table.add_row(name, *(f"{count:,}" for count in counts), how)
    print_table(console, table)
    console.print()


def _recognised(scope: ScopeSeen) -> str:
    ways: dict[str, int | None] = {}
    for each in scope.recognised:
        way = f"{each.dialect}: {each.by}"
        ways[way] = each.at_start
    return ", ".join(
        way if at_start is None else f"{way} ({at_start:,} at the start)"
        for way, at_start in ways.items()
    )


def _print_steps(console: Console, report: Report) -> None:
    table = new_table()
    for name in ("instrumentation", "steps", "that show"):
        table.add_column(name, overflow="fold")
    for scope in report.seen.scopes:
        for steps, shown in _steps(scope):
            table.add_row(printable(scope.scope or _NO_SCOPE), steps, shown)
    if table.row_count:
        print_table(console, table)
        console.print()


def _steps(scope: ScopeSeen) -> Iterator[tuple[str, str]]:
    tools, models, asked = scope.tools, scope.models, scope.requested
    if tools.calls:
        shown = f"arguments {tools.arguments:,}, result {tools.results:,}, error {tools.errors:,}"
        yield of(tools.calls, "tool call"), f"{shown}, call id {tools.call_ids:,}"
    if asked.calls:
        yield (
            of(asked.calls, "tool call") + " in messages",
            f"arguments {asked.arguments:,}, result {asked.results:,}, call id {asked.call_ids:,}",
        )
    if models.calls:
        shown = (
            f"tokens {models.usage:,}, answer {models.output:,}, requested calls "
            f"{models.requested_calls:,}, input {models.input:,}, finish reason "
            f"{models.finish_reasons:,}, response id {models.response_ids:,}"
        )
        yield of(models.calls, "model call"), shown
    if scope.conversations:
        yield of(scope.conversations, "span"), "a conversation id"


def _summary(report: Report) -> Text:
    runs = report.seen.runs
    held = (
        (runs.agent, "an agent's span"),
        (runs.top_span, "the topmost span"),
        (runs.guarded_run, "guarded_run"),
        (runs.ids, "ids"),
        (runs.unseen_top_span, "a topmost span that is missing"),
        (runs.single_calls, "nothing (one call each)"),
    )
    total = sum(count for count, _ in held)
    ways = ", ".join(f"{count:,} by {way}" for count, way in held if count)
    blind = sum(finding.severity == "blind" for finding in report.findings)
    weak = sum(finding.severity == "weak" for finding in report.findings)
    return Text(
        f"{of(report.seen.spans, 'span')}, {of(total, 'run')}"
        + (f", held together: {ways}" if ways else "")
        + f". {blind:,} blind, {weak:,} weak.",
        style="bold",
    )
