"""Prints a scene: the trace and the metrics as they arrived, the bill, and what was claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from otel_loopguard.testing.received import ReceivedEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arrivals import Trace
    from claims import Claim
    from scenes import Run, Scene

    from otel_loopguard.testing.received import ReceivedPoint, ReceivedSpan

FULL, HEAD, TAIL = 12, 4, 3  # how many spans are shown of a list, and of a longer one
VERDICT = ("loopguard.tripped", "loopguard.rule", "loopguard.run.status", "loopguard.run.steps")
STYLES = {"warn": "yellow", "abort": "bold red"}


def trace_tree(trace: Trace) -> Tree:
    """Draw the spans as a tree, each violation where it happened among its span's children."""
    tree = Tree(span_label(trace.root), guide_style="dim")
    grow(tree, trace.root, trace)
    return tree


def grow(branch: Tree, parent: ReceivedSpan, trace: Trace) -> None:
    children = trace.below(parent)
    hidden = children[HEAD:-TAIL] if len(children) > FULL else []
    entries: list[tuple[int, ReceivedSpan | ReceivedEvent]] = [
        *((span.started_ns, span) for span in children if span not in hidden[1:]),
        *((event.time_ns, event) for event in parent.events),
    ]
    for _, entry in sorted(entries, key=lambda entry: entry[0]):
        if isinstance(entry, ReceivedEvent):
            branch.add(event_label(entry))
        elif entry in hidden:
            branch.add(f"[dim]... {len(hidden)} more spans like these ...[/]")
        else:
            grow(branch.add(span_label(entry)), entry, trace)


def span_label(span: ReceivedSpan) -> str:
    verdict = [
        f"{name.removeprefix('loopguard.')}={span.attributes[name]}"
        for name in VERDICT
        if name in span.attributes
    ]
    style = "red" if span.status == "ERROR" else "bold"
    return f"[{style}]{escape(span.name)}[/] {what(span)}[cyan]{escape(' '.join(verdict))}[/]"


def what(span: ReceivedSpan) -> str:
    """Say in a few words what a model or tool span holds."""
    attributes = span.attributes
    if "error.type" in attributes:
        error = str(attributes["error.type"])
        return f"[red]{'an error' if error == '_OTHER' else escape(error)}[/] "
    if "gen_ai.tool.call.arguments" in attributes:
        call = [attributes.get(f"gen_ai.tool.call.{name}") for name in ("arguments", "result")]
        return "[dim]{} -> {}[/] ".format(*(escape(str(each)) for each in call))
    if "gen_ai.usage.input_tokens" in attributes:
        tokens = (attributes[f"gen_ai.usage.{name}_tokens"] for name in ("input", "output"))
        return "[dim]{} tokens in, {} out[/] ".format(*tokens)
    return ""


def event_label(event: ReceivedEvent) -> str:
    if event.name != "loopguard.violation":
        return f"[dim]{event.name} {event.attributes.get('exception.type', '')}[/]"
    action = str(event.attributes.get("loopguard.action"))
    details = (
        f"{name}={event.attributes.get(f'loopguard.{name}')}"
        for name in ("rule", "action", "count", "threshold", "step.number")
    )
    return f"[{STYLES.get(action, 'bold')}]{event.name} {' '.join(details)}[/]"


def metrics_table(points: Sequence[ReceivedPoint]) -> Table:
    """List the guard's metrics; series that are still at zero are there, but only counted here."""
    table = Table(
        "metric", "attributes", "value", title="The guard's metrics", title_justify="left"
    )
    ours = [point for point in points if point.name.startswith("loopguard.")]
    for point in ours:
        if point.value or point.count:
            attributes = " ".join(
                f"{name.removeprefix('loopguard.')}={value}"
                for name, value in sorted(point.attributes.items())
            )
            table.add_row(point.name, escape(attributes), value_text(point))
    silent = sum(1 for point in ours if not (point.value or point.count))
    table.caption = f"and {silent} series at zero"
    return table


def value_text(point: ReceivedPoint) -> str:
    if point.value is not None:
        return f"{point.value:g}"
    return f"sum {point.sum:.3g} {point.unit.strip('{}')}, count {point.count}"


def bill(scenes: Sequence[Scene]) -> Table:
    """List what each run cost: requests that the server saw, runs of the tools, tokens billed."""
    table = Table(title="What each run cost, and why it ended", title_justify="left")
    for name in ("framework", "agent", "guard"):
        table.add_column(name)
    for name in ("model calls", "tool runs", "tokens"):
        table.add_column(name, justify="right")
    table.add_column("ended by")
    for scene in scenes:
        for run in scene.runs:
            table.add_row(
                scene.framework.name,
                run.agent,
                "enforce" if scene.guarded else "none",
                str(run.model_calls),
                str(run.tool_executions),
                str(run.input_tokens + run.output_tokens),
                escape(ending(run)),
            )
    return table


def ending(run: Run) -> str:
    """Say why a run ended, in its caller's terms."""
    if run.report is not None:
        trip = run.report.trip
        return f"{type(run.error).__name__}: {trip.message if trip else run.report.rule}"
    if run.error is not None:
        return f"{type(run.error).__name__}: {run.error}".split(". ", 1)[0]
    return f"its answer: {run.answer}"


def verdicts(claims: Iterable[Claim]) -> Iterable[str]:
    """Say of each claim whether it holds, and what was found where it does not."""
    for claim in claims:
        if claim.holds:
            yield f"  [green]ok[/]      {escape(claim.text)}"
        else:
            yield (
                f"  [bold red]FAILED[/]  {escape(claim.text)}\n"
                f"          expected {escape(repr(claim.expected))}\n"
                f"          found    {escape(repr(claim.found))}"
            )
