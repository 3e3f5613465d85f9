"""The tables of the pages about rules: options, what was measured, the classes of `stagnation`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import get_type_hints

from otel_loopguard.backtest.wilson import rate
from otel_loopguard.detectors import DEFAULT_RULES, RULES, Detector
from otel_loopguard.detectors._stagnation_classes import STEP_CLASSES
from otel_loopguard.options.rules import STAGNATION
from otel_loopguard.settings import Limits, Thresholds
from scripts.measure_rules import UNSEEN, Line, Measured, Recordings, Spoken

_UNITS = {"_s": "a number of seconds", "_usd": "a number of US dollars"}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def level(value: float | None) -> str:
    """Return a threshold as people write it."""
    return "-" if value is None else f"{value:g}"


def thresholds_of(rule: str) -> Thresholds:
    """Return the thresholds of a rule by default."""
    return DEFAULT_RULES.get(rule, Thresholds())


def limits_of(detector: type[Detector]) -> list[str]:
    """Return the limits that a detector's docstring speaks of, in the order of `Limits`."""
    if detector.rule in RULES:
        return []
    named = set(re.findall(r"`(\w+)", detector.__doc__ or ""))
    return [name for name in Limits.__struct_fields__ if name in named]


def options_table(detector: type[Detector]) -> str:
    """Return what can be said of a rule in a policy, and what holds unless it is said."""
    head = ("option", "takes", "unless set")
    if detector.rule not in RULES:
        hints: Mapping[str, object] = get_type_hints(Limits)
        rows = [
            (f"`limits.{name}`", _taken(name, str(hints[name])), _default(name))
            for name in limits_of(detector)
        ]
        return table(head, rows)
    path, defaults = f"rules.{detector.rule}", thresholds_of(detector.rule)
    number = "a score: any number above 0" if detector.rule == STAGNATION else "a whole number"
    rows = [
        (f"`{path}.warn`", f"{number}; `0` for never", level(defaults.warn)),
        (f"`{path}.abort`", f"{number}; `0` for never", level(defaults.abort)),
        (f"`{path}.enabled`", "true or false", str(detector.rule in DEFAULT_RULES).lower()),
    ]
    if detector.rule == STAGNATION:
        takes = "a table of classes and numbers from -100 to 100"
        rows.append((f"`{path}.weights`", takes, "[as below](#classes)"))
    return table(head, rows)


def _taken(name: str, hint: str) -> str:
    if "Mapping" in hint:
        return "a table of tools and whole numbers"
    if "bool" in hint:
        return "true or false"
    of_time = (takes for ending, takes in _UNITS.items() if name.endswith(ending))
    return next(of_time, "a whole number")


def _default(name: str) -> str:
    default: object = getattr(Limits(), name)
    return str(default).lower() if isinstance(default, bool) else "off"


def measured_table(detector: type[Detector], measured: Measured) -> str:
    """Return how often a rule stopped runs, by where they come from; "" if nobody could tell."""
    lines = [line for line in measured.lines if line.rule == detector.rule]
    if not lines:
        return ""
    sources = measured.recordings
    rows = [_row(name, sources, lines, (name,)) for name in sources if _has(sources[name], lines)]
    return table(_head(lines), [*rows, _row("all of them", sources, lines, tuple(sources))])


def _has(source: Recordings, lines: Sequence[Line]) -> bool:
    return source.runs[lines[0].needs] > 0


def _head(lines: Sequence[Line]) -> tuple[str, ...]:
    if lines[0].at:
        return ("runs of", "that succeeded", *(f"stopped at `{line.at}`" for line in lines))
    named = ("that succeeded", "of these warned about", "of these stopped", "loops stopped")
    return ("runs of", "all", "stopped", *named)


def _row(
    name: str, sources: Mapping[str, Recordings], lines: Sequence[Line], of: Sequence[str]
) -> tuple[str, ...]:
    needs = lines[0].needs
    runs = sum(sources[source].runs[needs] for source in of)
    succeeded = sum(sources[source].succeeded[needs] for source in of)
    loops = sum(sources[source].loops for source in of)

    def shown(count: int) -> str:
        return share(count, succeeded) if len(of) > 1 else str(count)

    totals = [_total([line.by_source.get(source, Spoken()) for source in of]) for line in lines]
    if lines[0].at:
        return (name, f"{succeeded:,}", *(shown(total.succeeded_stopped) for total in totals))
    [total] = totals
    return (
        name,
        f"{runs:,}",
        f"{total.stopped:,}",
        f"{succeeded:,}",
        shown(total.succeeded_warned),
        shown(total.succeeded_stopped),
        f"{total.loops_stopped} of {loops}" if loops else "-",
    )


def _total(found: Sequence[Spoken]) -> Spoken:
    names = Spoken.__struct_fields__
    return Spoken(**{name: sum(getattr(spoken, name) for spoken in found) for name in names})


def share(count: int, of: int) -> str:
    """Return a count with its share and the 95 % interval of that."""
    found = rate(count, of)
    if found.share is None or found.low is None or found.high is None:
        return str(count)
    text = f"{count} ({found.share:.2%}, {found.low:.2%} to {found.high:.2%})"
    return text.replace("%", " %")


def together_table(measured: Measured) -> str:
    """Return what the default policy stopped, the largest source and the others apart."""
    sources, found = measured.recordings, measured.together
    largest = largest_of(measured)
    others = [name for name in sources if name != largest]

    def succeeded(names: Sequence[str]) -> str:
        stopped = sum(found[name].succeeded_stopped for name in names if name in found)
        return stopped_of(stopped, sum(sources[name].succeeded["steps"] for name in names))

    every = _total([*found.values()])
    runs, good = (
        sum(counts["steps"] for counts in each)
        for each in zip(*((s.runs, s.succeeded) for s in sources.values()), strict=True)
    )
    rows = [
        (f"that succeeded, in {largest}", succeeded([largest])),
        ("that succeeded, in all other sources", succeeded(others)),
        (
            "labelled as loops",
            stopped_of(every.loops_stopped, sum(s.loops for s in sources.values())),
        ),
        ("that did not succeed", stopped_of(every.stopped - every.succeeded_stopped, runs - good)),
    ]
    return table(("runs", "stopped by the default policy"), rows)


def largest_of(measured: Measured) -> str:
    """Return the source with most of the runs that succeeded."""
    sources = measured.recordings
    return max(sources, key=lambda name: sources[name].succeeded["steps"])


def stopped_of(count: int, of: int) -> str:
    """Return a count of stopped runs, of how many, and the share with its interval."""
    text = share(count, of)
    _, bracket, rest = text.partition(" (")
    return f"{count:,} of {of:,}{bracket}{rest}"


def stopped_share(detector: type[Detector], measured: Measured) -> str:
    """Return how many of the successful runs a rule stopped, by default or as in its example."""
    if detector.rule in UNSEEN:
        return "-"
    lines = [line for line in measured.lines if line.rule == detector.rule]
    line = lines[len(lines) // 2]
    count = sum(spoken.succeeded_stopped for spoken in line.by_source.values())
    of = sum(source.succeeded[line.needs] for source in measured.recordings.values())
    at = f" at `{line.at}`" if line.at else ""
    return f"{count} of {of:,}{at}"


def classes_table() -> str:
    """Return the classes of `stagnation`, with their weights and where these come from."""
    head = ("class", "what a call brought", "weight", "from", "if it failed", "from")
    return table(
        head,
        [
            (
                f"`{name}`",
                found.meaning,
                f"{found.weight:g}",
                found.origin,
                f"{found.failed:g}",
                found.failed_origin,
            )
            for name, found in STEP_CLASSES.items()
        ],
    )
