"""Prints what came of the scenes: the guard's metrics, the bill, and what was claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from scenes import HEALTHY, RUNAWAY, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from arrivals import Arrivals
    from claims import Claim
    from scenes import Scene

    from otel_loopguard.testing.received import ReceivedPoint

PREFIX = "loopguard."


def introduction(frameworks: Sequence[str]) -> str:
    """Say what will happen."""
    endless, finish3 = SCRIPTS[RUNAWAY], SCRIPTS[HEALTHY]
    return (
        f"An agent that never stops, built twice: with {' and with '.join(frameworks)}. Each runs "
        "first without the guard, until the framework's own limit ends it; then with the guard, "
        "beside a healthy agent that must not be touched.\n\n"
        f"[bold]No real model is called:[/] `{endless}` and `{finish3}` are scripted models on "
        f"this machine. `{endless}` asks for the same search for ever, `{finish3}` answers at its "
        "third call. The frameworks, their telemetry and the guard are real; the traces and "
        "metrics below were read from the OTLP receiver to which they are exported.\n"
    )


def metrics_table(arrivals: Mapping[str, Arrivals]) -> Table:
    """List the guard's metrics of every framework; series at zero are there, but not listed."""
    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title_justify="left",
        title=f"`{PREFIX}` is left off, and series at zero; of histograms the sum is shown",
    )
    table.add_column("metric", no_wrap=True)
    table.add_column("attributes", overflow="fold")
    values: dict[tuple[str, str], dict[str, str]] = {}
    for framework, arrived in arrivals.items():
        table.add_column(framework, justify="right")
        for point in arrived.metrics:
            if point.name.startswith(PREFIX) and (point.value or point.count):
                values.setdefault(series(point), {})[framework] = value_text(point)
    for (name, attributes), of_frameworks in values.items():
        cells = (of_frameworks.get(framework, "") for framework in arrivals)
        table.add_row(name, escape(attributes), *cells)
    return table


def series(point: ReceivedPoint) -> tuple[str, str]:
    attributes = (
        f"{name.removeprefix(PREFIX)}={value}" for name, value in sorted(point.attributes.items())
    )
    return point.name.removeprefix(PREFIX), " ".join(attributes)


def value_text(point: ReceivedPoint) -> str:
    if point.value is not None:
        return f"{point.value:g}"
    of_what = f"{point.unit[1:-1]}s" if point.unit.startswith("{") else point.unit
    return f"{point.sum:.3g} {of_what}"


def bill(scenes: Sequence[Scene]) -> Table:
    """List what each run cost: requests that the server saw, runs of the tools, tokens billed."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("framework", "agent", "guard"):
        table.add_column(name, no_wrap=True)
    for name in ("model\ncalls", "tool\nruns", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ended by", overflow="fold")
    for scene in scenes:
        for run in scene.runs:
            table.add_row(
                scene.framework.name,
                run.agent,
                "enforce" if scene.guarded else "none",
                str(run.model_calls),
                str(run.tool_executions),
                f"{run.tokens:,}",
                "its answer" if run.error is None else type(run.error).__name__,
            )
    return table


def verdicts(claims: Mapping[str, Sequence[Claim]]) -> Iterator[str]:
    """Say how many claims hold, and of each that does not what was found."""
    everything = [(service, claim) for service, each in claims.items() for claim in each]
    failed = [(service, claim) for service, claim in everything if not claim.holds]
    style = "bold red" if failed else "bold green"
    held = len(everything) - len(failed)
    yield f"[{style}]{held} of {len(everything)} claims hold.[/]"
    for service, claim in failed:
        yield (
            f"[bold red]FAILED[/]  {escape(service)}: {escape(claim.text)}\n"
            f"        expected {escape(repr(claim.expected))}\n"
            f"        found    {escape(repr(claim.found))}"
        )


def summaries(scenes: Sequence[Scene]) -> Iterator[str]:
    """Say in a line per framework what the runaway cost without the guard and with it."""
    runaways = {(scene.framework.name, scene.guarded): scene.run_of(RUNAWAY) for scene in scenes}
    for name in dict.fromkeys(scene.framework.name for scene in scenes):
        free, guarded = runaways[name, False], runaways[name, True]
        yield (
            f"[bold]{name}[/]: {free.model_calls} model calls and {free.tokens:,} tokens "
            f"unguarded, {guarded.model_calls} calls and {guarded.tokens:,} tokens guarded"
        )
