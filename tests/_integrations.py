"""What each integration does to a runaway and to a healthy run, as measured.

The cells are in `tests/testdata/integrations`; the contract tests measure them and hold them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tests._zero_code import Spent, Where

FOLDER = Path(__file__).parent / "testdata" / "integrations"

Goal: TypeAlias = Literal["requests", "tools", "caller", "goes on", "blocked", "hint"]
"""A part of what was measured that has a target."""

GOALS: tuple[Goal, ...] = ("requests", "tools", "caller", "goes on", "blocked", "hint")

QUIET = "an answer"
"""What the caller gets where nothing is raised; what comes after it is how that says it."""


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to run an agent for ever, under the default policy in mode `enforce`."""

    way: str
    rule: str | None
    """What tripped; `None` where nothing did."""
    at_the_trip: Spent | None
    at_the_end: Spent
    caller: str
    """The type of what is raised, else how the framework's own ending says that it was stopped."""
    run_aborted: Where
    status: str
    """How the run counts: `aborted`, if the guard has been told that it was stopped."""
    goes_on: bool
    """A further turn of the same conversation was answered."""
    reasons: Mapping[Goal, str] = {}
    """Why a part is not at its target."""

    def off_target(self) -> set[Goal]:
        """Return the parts that are not at their target."""
        trip, end = self.at_the_trip, self.at_the_end
        at_target: dict[Goal, bool] = {
            "requests": trip is not None and end.model_requests == trip.model_requests,
            "tools": trip is not None and end.tool_executions == trip.tool_executions,
            "caller": self.status == "aborted" and self.caller != QUIET,
            "goes on": self.goes_on,
        }
        return {goal for goal, reached in at_target.items() if not reached}


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one framework."""

    title: str
    measured: str
    """On which day, as in `2026-11-30`."""
    versions: Mapping[str, str]
    oldest: Mapping[str, str] = {}
    """The oldest versions on which the same was found."""
    blocked: Spent | None = None
    """What a run took whose fourth equal call is one too many, without content on spans; the aim is
    4 requests and 3 executions."""
    hint: int | None = None
    """How often a model was told of its repetition until it changed course; the aim is once."""
    reasons: Mapping[Goal, str] = {}
    cells: tuple[Cell, ...] = ()

    def cell(self, way: str) -> Cell | None:
        """Return what was measured of one way to run an agent, if it was."""
        return next((cell for cell in self.cells if cell.way == way), None)


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
