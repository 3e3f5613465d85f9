"""Writes docs/zero-code.md: what the guard alone does to agents, framework by framework.

    python -m scripts.stopping_page

`make stopping-page` runs it. The page is made of `tests/testdata/zero_code`, which the contract
tests measure: `make stopping-rows` writes that anew, and the page with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tests._zero_code import FIGURES, Figure, Row, Sheet, Spent, Surroundings, Where, sheets

PAGE = Path(__file__).resolve().parent.parent / "docs" / "zero-code.md"

_HEAD = """\
# Without code

What a guard does that is added to the tracer provider, in mode `enforce`, with the default policy
and no line of the agent changed. Each framework runs with its real instrumentation against a model
server that plays scripts and counts requests, and with tools that count their executions. A figure
that is not at its target is in **bold**, with a number that says why below.

[Frameworks](frameworks.md) says what has to be switched on, [Stopping](stopping.md) what does the
stopping. `make stopping-rows` measures all this anew and writes this page; the contract tests fail
where what they measure is no longer what it says.

## Modes

| mode | the agent is |
|---|---|
| sync | called by code that blocks; else, awaited in an `asyncio.run` of its own |
| async | awaited |
| stream, async-stream | asked for its events, or for the answer piece by piece |
| thread | CrewAI's `kickoff_async`: awaited, and at work in a thread |
| akickoff | CrewAI's `akickoff`: awaited, and at work in the event loop |
| iter | Pydantic AI's `Agent.iter`: taken one step of its graph at a time |
| invoke | Semantic Kernel's `ChatCompletionAgent.invoke`: asked for each of its responses |
| chat-stream | streamed by the OpenAI Agents SDK through Chat Completions, not Responses |

## A runaway

The model asks for one tool with the same arguments for ever, and gets the same result. Figures are
model requests / tool executions. At its target the run trips at the fifth request, or at the result
of the call that it asks for; no model request is started after that; and the caller gets
`RunAborted`, itself or as a cause. A tool call that the model asked for before the trip may still
run. What nothing stops ends by itself at 12 requests.

Loops over a client trip at 5 / 4 by `repeated_output`, and not by `repeated_result`: their tools
have no spans, so that the result of a call shows only in the request after it. The fifth answer,
equal to the four before it, is there earlier: it trips the run before the fifth call is made.

| framework | around it | modes | at the trip | in the end | requests after it | the caller gets |
|---|---|---|---|---|---|---|
"""
_HEALTHY = """
## Healthy runs

The model asks for two tools and answers: 3 model requests, 2 tool executions. *Alone* is held
against the same run without a guard. *Beside a runaway* is one that lasts until the runaway has
ended, in the same event loop or in another thread.

| framework | around it | modes | alone | beside a runaway | the runaway |
|---|---|---|---|---|---|
"""
_REASONS = "\n## Why some figures are not at their target\n\n"
_VERSIONS = """
## What was run

| framework | versions |
|---|---|
"""
_AROUND: Mapping[Surroundings, str] = {
    "nothing": "nothing",
    "own-span": "a span of the application",
    "guarded-run": "`guarded_run()`",
}
_WHERE: Mapping[Where, str] = {
    "itself": "",
    "wrapped": ", with `RunAborted` behind it",
    "text": ", with the words of the guard",
    "absent": ", no `RunAborted`",
}


def page(measured: Mapping[str, Sheet] | None = None) -> str:
    """Return the page, of what is committed if no other sheets are given."""
    every = sorted((measured or sheets()).values(), key=_order)
    reasons = list(dict.fromkeys(why for sheet in every for why in _reasons(sheet)))
    parts = [
        _HEAD,
        *(_runaway(sheet.title, rows, reasons) for sheet in every for rows in _alike(sheet)),
        _HEALTHY,
        *(_healthy(sheet.title, rows, reasons) for sheet in every for rows in _alike(sheet)),
        *([_REASONS] if reasons else []),
        *(f"{number}. {why[0].upper()}{why[1:]}.\n" for number, why in enumerate(reasons, 1)),
        _VERSIONS,
        *(f"| {_title(sheet.title)} | {_versions(sheet)} |\n" for sheet in every),
    ]
    return "".join(parts)


def _order(sheet: Sheet) -> tuple[bool, str]:
    """Put frameworks before loops that are written by hand."""
    return sheet.title.startswith("a loop"), sheet.title.lower()


def _reasons(sheet: Sheet) -> Iterator[str]:
    for row in sheet.rows:
        yield from (row.reasons[figure] for figure in FIGURES if figure in row.reasons)


def _alike(sheet: Sheet) -> list[list[Row]]:
    """Put the rows together that differ in nothing but their mode."""
    groups: dict[bytes, list[Row]] = {}
    for row in sheet.rows:
        key = msgspec.json.encode(msgspec.structs.replace(row, mode=""))
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _runaway(title: str, rows: Sequence[Row], reasons: Sequence[str]) -> str:
    row = rows[0]
    after = row.after_the_trip
    cells: dict[Figure | None, str] = {
        "trip": _trip(row),
        None: _spent(row.at_the_end),
        "after the trip": "" if after is None else f"{after}",
        "caller": f"`{row.error}`" if row.error else "an answer",
    }
    cells["caller"] += _WHERE[row.run_aborted]
    shown = (_marked(row, figure, text, reasons) for figure, text in cells.items())
    return f"| {_opening(title, rows)} | {' | '.join(shown)} |\n"


def _healthy(title: str, rows: Sequence[Row], reasons: Sequence[str]) -> str:
    row = rows[0]
    answer = "same answer" if row.healthy.same_answer else "another answer"
    warnings = f"{row.healthy.warnings or 'no'} warning{'' if row.healthy.warnings == 1 else 's'}"
    beside = "same answer" if row.together.same_answer else "another answer"
    cells: list[tuple[Figure | None, str]] = [
        ("healthy", f"{_spent(row.healthy.spent)}, {answer}, {warnings}"),
        ("together", f"{_spent(row.together.healthy)}, {beside}"),
        (None, _spent(row.together.runaway)),
    ]
    shown = (_marked(row, figure, text, reasons) for figure, text in cells)
    return f"| {_opening(title, rows)} | {' | '.join(shown)} |\n"


def _opening(title: str, rows: Sequence[Row]) -> str:
    modes = ", ".join(row.mode for row in rows)
    return f"{_title(title)} | {_AROUND[rows[0].around]} | {modes}"


def _marked(row: Row, figure: Figure | None, text: str, reasons: Sequence[str]) -> str:
    if figure is None or figure not in row.reasons:
        return text
    return f"**{text}** ({reasons.index(row.reasons[figure]) + 1})"


def _trip(row: Row) -> str:
    if row.at_the_trip is None:
        return "no trip"
    return f"{_spent(row.at_the_trip)}, `{row.rule}`"


def _title(title: str) -> str:
    return title[0].upper() + title[1:]


def _spent(spent: Spent) -> str:
    return f"{spent.model_requests} / {spent.tool_executions}"


def _versions(sheet: Sheet) -> str:
    return ", ".join(f"`{name}` {version}" for name, version in sheet.versions.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
