"""What each client shows of the odd scripts, as measured.

The sheets are in `tests/testdata/clients`; the tests of the clients hold them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.clients._plays import ODD
from tests.clients._seen import Report

FOLDER = Path(__file__).parents[1] / "testdata" / "clients"


class ShownCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call, without the id."""

    name: str
    arguments: object
    failure: str | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One odd script."""

    script: str
    stream: bool
    turns: int
    requests: int
    finish: str | None = None
    """Of the first turn, as the next ones are."""
    text: str = ""
    calls: tuple[ShownCall, ...] = ()
    failure: str | None = None
    """The type of what the client raised, at once or in the turn after those that it shows."""
    status: int | None = None


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one client."""

    title: str
    api: str
    address: str
    versions: Mapping[str, str]
    rows: tuple[Row, ...]


def rows_of(report: Report) -> tuple[Row, ...]:
    """Return what a client has shown of the odd scripts."""
    return tuple(_row(report, script, stream=s) for script in ODD for s in (False, True))


def _row(report: Report, script: str, *, stream: bool) -> Row:
    seen = report.of(script, stream=stream)
    first = seen.turns[0] if seen.turns else None
    failure = seen.failure
    return Row(
        script=script,
        stream=stream,
        turns=len(seen.turns),
        requests=report.requests[script, stream],
        finish=first.finish if first else None,
        text=first.text if first else "",
        calls=tuple(
            ShownCall(name=call.name, arguments=call.arguments, failure=call.failure)
            for call in (first.calls if first else ())
        ),
        failure=failure.type if failure else None,
        status=failure.status if failure else None,
    )


def sheets() -> dict[str, Sheet]:
    """Return the sheet of each client, by the name of its file."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))}


def path_of(name: str) -> Path:
    """Return the file of this client's sheet."""
    return FOLDER / f"{name}.json"


def read(path: Path) -> Sheet:
    """Return the sheet in a file."""
    return msgspec.json.decode(path.read_bytes(), type=Sheet)


def write(path: Path, sheet: Sheet) -> None:
    """Put a sheet into its file, with a line for each row, so that changes can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = msgspec.json.encode(msgspec.structs.replace(sheet, rows=())).decode()
    rows = ",\n".join(msgspec.json.encode(row).decode() for row in sheet.rows)
    path.write_text(f"{head.removesuffix('[]}')}[\n{rows}\n]}}\n", encoding="utf-8")
