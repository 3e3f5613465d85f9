"""Writes docs/recordings.md: what is counted in recordings of real frameworks, beside the truth.

    python -m scripts.recordings_page

`make recordings-page` runs it. The page is made of `tests/testdata/traces`, as the code reads them
now, and of the exceptions in `tests/_truth.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from tests._played import replayed
from tests._recordings import FOLDERS, Recording, recordings, true_folders
from tests._truth import EXCEPTIONS, What, reason_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "recordings.md"

_HEAD = """\
# Recordings

Frameworks were run with their instrumentations against a model server that plays scripts and counts
requests, and with tools that count their executions. What the guard counts in the spans is held
against that, by a test for each of the {recordings} recordings below. In {equal} of them every
figure is the true one. Figures that are not are in **bold**, with a number that says why below:
{partly} recordings have some.

The recordings, and what the scripts do, are in `tests/testdata/traces`. `endless` and `alternate`
are loops, `error_tool` calls a tool that fails; the rest is healthy. A run that goes round in
circles trips in each recording that shows enough of it; no healthy one does. The last column has
the rules that say stop under the default policy.

Live spans give the same counts, and the same decisions, as the recorded ones, also where nothing
but the spans tells which run they belong to. Where they do not, the list at the end says so.

`make recordings-page` writes this page.

"""
_TABLE = """\
| script | model requests | tool executions | input / output tokens | runs | stops |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    true = [each for each in recordings() if each.folder in true_folders()]
    partly = [each for each in true if any(_departs(each, what) for what in figures(each))]
    head = _HEAD.format(recordings=len(true), equal=len(true) - len(partly), partly=len(partly))
    sections = [_section(folder) for folder in FOLDERS if folder in true_folders()]
    return head + "\n".join(sections) + "\n" + "\n".join(_reasons()) + "\n"


def figures(recording: Recording) -> dict[What, tuple[object, object]]:
    """Return each figure of a recording: ours, and the true one."""
    played, truth = replayed(recording), recording.truth
    if truth is None:
        return {}
    found: dict[What, tuple[object, object]] = {
        "model requests": (played.counts.model_requests, truth.model_requests),
        "tool executions": (played.counts.tool_executions, truth.tool_executions),
        "runs": (len(played.reports), 1),
    }
    if recording.tokens is not None:
        found["tokens"] = (played.tokens, tuple(recording.tokens))
    return found


def _section(folder: str) -> str:
    rows = "".join(_row(recording) for recording in recordings(folder))
    return f"## {folder}\n\n{_TABLE}{rows}"


def _row(recording: Recording) -> str:
    columns: tuple[What, ...] = ("model requests", "tool executions", "tokens", "runs")
    cells = [_cell(recording, what) for what in columns]
    stops = ", ".join(f"`{rule}`" for rule in sorted(replayed(recording).trips))
    return f"| `{recording.script}` | {' | '.join(cells)} | {stops} |\n"


def _cell(recording: Recording, what: What) -> str:
    found = figures(recording).get(what)
    if found is None:
        return ""
    ours, true = (_shown(figure) for figure in found)
    if ours == true:
        return ours
    return f"**{ours}**, true {true} ({_number_of(recording, what)})"


def _shown(figure: object) -> str:
    if isinstance(figure, tuple):
        return " / ".join(f"{part:,}" for part in cast("tuple[int, ...]", figure))
    return f"{figure}"


def _departs(recording: Recording, what: What) -> bool:
    ours, true = figures(recording)[what]
    return ours != true


def _number_of(recording: Recording, what: What) -> int:
    reason = reason_of(recording, what)
    return _all_reasons().index(reason) + 1 if reason is not None else 0


def _all_reasons() -> list[str]:
    return list(dict.fromkeys(each.why for each in EXCEPTIONS))


def _reasons() -> Iterator[str]:
    yield "## Why some figures are not the true ones\n"
    for number, reason in enumerate(_all_reasons(), 1):
        about = dict.fromkeys(each.folder for each in EXCEPTIONS if each.why == reason)
        what = dict.fromkeys(
            what for each in EXCEPTIONS if each.why == reason for what in each.what
        )
        folders = ", ".join(f"`{folder}`" for folder in about)
        yield f"{number}. {reason[0].upper()}{reason[1:]} ({', '.join(what)}; {folders})."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
