"""Writes docs/integrations/matrix.md: what each integration does, way by way.

    python -m scripts.integrations_page

`make integrations-page` runs it. The page is made of `tests/testdata/integrations`, which the
contract tests measure: `make matrix` writes that anew, and the page with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tests._integrations import Cell, Goal, Sheet, sheets
from tests._zero_code import Spent, Where

PAGE = Path(__file__).resolve().parent.parent / "docs" / "integrations" / "matrix.md"

_HEAD = """\
# What each integration does

Real frameworks against a model server that plays scripts and counts requests, with tools that count
their executions; the guard enforces, with the default policy and the integration. A figure that is
not at its target is in **bold**, with a number that says why below. `make matrix` measures all this
anew and writes this page; the contract tests fail where what they measure is no longer what it
says.

## A runaway, and the turn after it

The model asks for the same call for ever: in *parallel* ways for three of them at once, in *nested*
ones an agent does that runs as a tool of another, or below it; in *hand-off* ones agents hand over
to each other for ever. Figures are model requests / tool executions, when the run tripped and in
the end: nothing is to start after the trip. Then the conversation is gone on with: a further turn
must be answered by the model, which refuses a history in which a call has no result.

| framework | ways | at the trip | in the end | the caller gets | goes on |
|---|---|---|---|---|---|
"""
_OTHER = """
## Before a call is made, and before it is too late

*A fourth equal call*: `max_repeated_calls=3`, without arguments or results on any span; it is asked
for, and not made: 4 / 3. *Hints*: how often a model was told that it repeats itself until it did
something else.

| framework | a fourth equal call | hints |
|---|---|---|
"""
_REASONS = "\n## Why some figures are not at their target\n\n"
_VERSIONS = """
## What was run

| framework | measured | newest | oldest |
|---|---|---|---|
"""
_WHERE: Mapping[Where, str] = {
    "itself": "",
    "wrapped": ", with `RunAborted` behind it",
    "text": ", with the words of the guard",
    "absent": "",
}


def page(measured: Mapping[str, Sheet] | None = None) -> str:
    """Return the page, of what is committed if no other sheets are given."""
    every = sorted((measured or sheets()).values(), key=lambda sheet: sheet.title.lower())
    reasons = list(dict.fromkeys(why for sheet in every for why in _reasons(sheet)))
    parts = [
        _HEAD,
        *(_runaway(sheet.title, cells, reasons) for sheet in every for cells in _alike(sheet)),
        _OTHER,
        *(_other(sheet, reasons) for sheet in every),
        *([_REASONS] if reasons else []),
        *(f"{number}. {why[0].upper()}{why[1:]}.\n" for number, why in enumerate(reasons, 1)),
        _VERSIONS,
        *(
            f"| {sheet.title} | {sheet.measured} | {_versions(sheet.versions)} "
            f"| {_versions(sheet.oldest) or 'not run'} |\n"
            for sheet in every
        ),
    ]
    return "".join(parts)


def _reasons(sheet: Sheet) -> Iterator[str]:
    for cell in sheet.cells:
        yield from cell.reasons.values()
    yield from sheet.reasons.values()


def _alike(sheet: Sheet) -> list[list[Cell]]:
    """Put the cells together that differ in nothing but their way."""
    groups: dict[bytes, list[Cell]] = {}
    for cell in sheet.cells:
        key = msgspec.json.encode(msgspec.structs.replace(cell, way=""))
        groups.setdefault(key, []).append(cell)
    return list(groups.values())


def _runaway(title: str, cells: Sequence[Cell], reasons: Sequence[str]) -> str:
    cell = cells[0]
    trip = cell.at_the_trip
    end = _marked(_spent(cell.at_the_end), _why(cell, "requests", "tools"), reasons)
    caller = f"`{cell.caller}`{_WHERE[cell.run_aborted]}"
    shown = (
        title,
        ", ".join(cell.way for cell in cells),
        "no trip" if trip is None else f"{_spent(trip)}, `{cell.rule}`",
        end,
        _marked(caller, _why(cell, "caller"), reasons),
        _marked("yes" if cell.goes_on else "no", _why(cell, "goes on"), reasons),
    )
    return f"| {' | '.join(shown)} |\n"


def _other(sheet: Sheet, reasons: Sequence[str]) -> str:
    blocked = "not run" if sheet.blocked is None else _spent(sheet.blocked)
    hint = "cannot be given" if sheet.hint is None else f"{sheet.hint}"
    shown = (
        sheet.title,
        _marked(blocked, _why(sheet, "blocked"), reasons),
        _marked(hint, _why(sheet, "hint"), reasons),
    )
    return f"| {' | '.join(shown)} |\n"


def _why(what: Cell | Sheet, *goals: Goal) -> list[str]:
    return list(dict.fromkeys(what.reasons[goal] for goal in goals if goal in what.reasons))


def _marked(text: str, why: Sequence[str], reasons: Sequence[str]) -> str:
    if not why:
        return text
    return f"**{text}** ({', '.join(str(reasons.index(each) + 1) for each in why)})"


def _spent(spent: Spent) -> str:
    return f"{spent.model_requests} / {spent.tool_executions}"


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {version}" for name, version in versions.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
