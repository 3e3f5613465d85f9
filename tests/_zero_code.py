"""What the guard alone does to a runaway and to healthy runs, framework by framework, as measured.

The rows are in `tests/testdata/zero_code`; the contract tests measure them and hold them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

FOLDER = Path(__file__).parent / "testdata" / "zero_code"

Surroundings: TypeAlias = Literal["nothing", "own-span", "guarded-run"]
"""What stands around a run: nothing, a span of the application, or a `guarded_run` block."""

Where: TypeAlias = Literal["itself", "wrapped", "text", "absent"]
"""Where `RunAborted` is in what the caller gets: it, behind it, only its words, or nowhere."""

Figure: TypeAlias = Literal["trip", "after the trip", "caller", "healthy", "together"]
"""A part of a row that has a target."""

FIGURES: tuple[Figure, ...] = ("trip", "after the trip", "caller", "healthy", "together")


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in the world: at the model server, and in the tools themselves."""

    model_requests: int
    tool_executions: int


REQUESTS_AT_THE_TRIP = 5
"""The target of a runaway: its fifth turn, or the result of the call that this asks for, is one too
many. A call that a turn has asked for is no longer kept from running."""

HEALTHY = Spent(model_requests=3, tool_executions=2)
"""What the healthy script takes without a guard."""

REACHES_THE_CALLER: tuple[Where, ...] = ("itself", "wrapped")


class Healthy(msgspec.Struct, frozen=True, kw_only=True):
    """A healthy run with the guard, beside the same without."""

    spent: Spent
    same_answer: bool
    warnings: int
    """Violations and lines in the log."""


UNTOUCHED = Healthy(spent=HEALTHY, same_answer=True, warnings=0)


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """A runaway and a healthy run at the same time, in one event loop or in two threads."""

    runaway: Spent
    run_aborted: Where
    healthy: Spent
    same_answer: bool


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to run an agent, under the default policy in mode `enforce`."""

    around: Surroundings
    mode: str
    rule: str | None
    """What tripped; `None` where nothing did."""
    at_the_trip: Spent | None
    at_the_end: Spent
    error: str | None
    """The type of what the caller gets; `None` for an answer."""
    run_aborted: Where
    healthy: Healthy
    together: Together
    reasons: Mapping[Figure, str] = {}
    """Why a figure is not at its target."""

    @property
    def after_the_trip(self) -> int | None:
        """The model requests that were started after the trip; `None` where there was none."""
        if self.at_the_trip is None:
            return None
        return self.at_the_end.model_requests - self.at_the_trip.model_requests

    def off_target(self) -> set[Figure]:
        """Return the figures that are not at their target."""
        trip, after = self.at_the_trip, self.after_the_trip
        at_target: dict[Figure, bool] = {
            "trip": trip is not None and trip.model_requests == REQUESTS_AT_THE_TRIP,
            "after the trip": after == 0,
            "caller": self.run_aborted in REACHES_THE_CALLER,
            "healthy": self.healthy == UNTOUCHED,
            "together": (self.together.runaway, self.together.run_aborted)
            == (self.at_the_end, self.run_aborted)
            and (self.together.healthy, self.together.same_answer) == (HEALTHY, True),
        }
        return {figure for figure, reached in at_target.items() if not reached}


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one framework."""

    title: str
    versions: Mapping[str, str]
    """Of the framework and of its instrumentation, when the rows were written."""
    rows: tuple[Row, ...] = ()

    def row(self, around: Surroundings, mode: str) -> Row | None:
        """Return the row of one way to run an agent, if there is one."""
        found = [row for row in self.rows if (row.around, row.mode) == (around, mode)]
        return found[0] if found else None


def sheets() -> dict[str, Sheet]:
    """Return the sheet of each framework, by the name of its file."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))}


def read(path: Path) -> Sheet:
    """Return the sheet in a file."""
    return msgspec.json.decode(path.read_bytes(), type=Sheet)


def write(path: Path, sheet: Sheet) -> None:
    """Put a sheet into its file, as text whose changes can be read line by line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(sheet), indent=2) + b"\n")
