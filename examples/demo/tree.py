"""Draws a trace as it arrived: its spans as a tree, with each violation where it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.tree import Tree

from otel_loopguard.testing.received import ReceivedEvent

if TYPE_CHECKING:
    from arrivals import Trace

    from otel_loopguard.testing.received import ReceivedSpan

FULL, HEAD, TAIL = 12, 4, 3  # how many spans are shown of a list, and of a longer one
LEVELS = {"warn": ("yellow", "warns"), "abort": ("bold red", "stops")}
REFUSAL = "RunAborted"


def trace_tree(trace: Trace) -> Tree:
    """Draw the spans as a tree, each violation where it happened among its span's children."""
    tree = Tree(span_label(trace.root), guide_style="dim")
    grow(tree, trace.root, trace)
    return tree


def grow(branch: Tree, parent: ReceivedSpan, trace: Trace) -> None:
    children = trace.below(parent)
    hidden = children[HEAD:-TAIL] if len(children) > FULL else []
    # What a refused request's exception says, its label says already.
    events = () if is_refused(parent) else parent.events
    entries: list[tuple[int, ReceivedSpan | ReceivedEvent]] = [
        *((span.started_ns, span) for span in children if span not in hidden[1:]),
        *((event.time_ns, event) for event in events),
    ]
    for _, entry in sorted(entries, key=lambda entry: entry[0]):
        if isinstance(entry, ReceivedEvent):
            branch.add(event_label(entry))
        elif entry in hidden:
            branch.add(f"[dim]... {len(hidden)} more spans like these ...[/]")
        else:
            grow(branch.add(span_label(entry)), entry, trace)


def span_label(span: ReceivedSpan) -> str:
    parts = (f"[bold]{escape(span.name)}[/]", what(span), verdict(span))
    return " ".join(part for part in parts if part)


def what(span: ReceivedSpan) -> str:
    """Say in a few words what a span holds."""
    attributes = span.attributes
    if is_refused(span):
        return f" [bold red]refused before it was sent ({REFUSAL})[/]"
    if span.status == "ERROR":
        error = short(attributes.get("error.type", "_OTHER"))
        return "[red]ERROR[/]" if error == "_OTHER" else f"[red]ERROR {escape(error)}[/]"
    if "gen_ai.tool.call.arguments" in attributes:
        call = [attributes.get(f"gen_ai.tool.call.{name}") for name in ("arguments", "result")]
        return "[dim]{} -> {}[/]".format(*(escape(str(each)) for each in call))
    if attributes.get("gen_ai.operation.name") == "chat":
        tokens = (attributes.get(f"gen_ai.usage.{name}_tokens") for name in ("input", "output"))
        return "[dim]{} tokens in, {} out[/]".format(*tokens)
    return ""


def is_refused(span: ReceivedSpan) -> bool:
    """Say whether this is a model request that ended before it left."""
    errors = [
        span.attributes.get("error.type"),
        *(event.attributes.get("exception.type") for event in span.events),
    ]
    is_model_call = span.attributes.get("gen_ai.operation.name") == "chat"
    return is_model_call and any(short(error) == REFUSAL for error in errors)


def verdict(span: ReceivedSpan) -> str:
    """Say what the guard wrote on the top span of a run."""
    names = ("status", "steps")
    status, steps = (span.attributes.get(f"loopguard.run.{name}") for name in names)
    if status is None:
        return ""
    rule = span.attributes.get("loopguard.rule")
    by_rule = f" by {rule}" if rule else ""
    return f"[cyan]loopguard: {escape(f'{status}{by_rule}, {steps} steps')}[/]"


def event_label(event: ReceivedEvent) -> str:
    if event.name != "loopguard.violation":
        return f"[dim]{event.name} {short(event.attributes.get('exception.type', ''))}[/]"
    names = ("rule", "action", "count", "threshold")
    rule, action, count, threshold = (event.attributes.get(f"loopguard.{n}") for n in names)
    style, does = LEVELS.get(str(action), ("bold", str(action)))
    evidence = f"same result {count} times" if rule == "repeated_result" else f"count {count}"
    return f"[{style}]{event.name} {rule}: {evidence} ({does} at {threshold})[/]"


def short(name: object) -> str:
    """Return the name of a class without its module."""
    return str(name).rsplit(".", 1)[-1]
