"""The committed cells of one integration, and what holds them to what is measured."""

from __future__ import annotations

import datetime as dt
from importlib.metadata import version
from pathlib import Path

import msgspec

from tests._integrations import FOLDER, GOALS, Cell, Goal, Sheet, read, write
from tests._zero_code import Spent
from tests.frameworks._integrated import Integrated

BLOCKED = Spent(model_requests=4, tool_executions=3)
"""The fourth of equal calls is asked for and not made."""

_REMEDY = "if that is meant, write it anew: see `make matrix` in CONTRIBUTING.md"


class Cells:
    """What is committed of an integration, or, while measuring, what becomes of it."""

    def __init__(
        self, integrated: Integrated, path: Path, *, measuring: bool, is_oldest: bool
    ) -> None:
        self._integrated = integrated
        self._path = path
        self._measuring = measuring
        self._is_oldest = is_oldest

    def hold(self, measured: Cell) -> None:
        """Compare a cell with the committed one, or put it in its place."""
        reasons = self._reasons(measured.off_target(), measured.way)
        cell = msgspec.structs.replace(measured, reasons=reasons)
        if self._measuring:
            order = {way: place for place, way in enumerate(self._integrated.ways)}
            kept = [each for each in self._sheet().cells if each.way in order]
            cells = [cell, *(each for each in kept if each.way != cell.way)]
            cells.sort(key=lambda each: order[each.way])
            self._put(cells=tuple(cells), versions=self._versions())
        committed = self._sheet().cell(cell.way)
        assert cell == committed, f"{self._path.name} says otherwise; {_REMEDY}"

    def hold_blocked(self, spent: Spent) -> None:
        """Do so with a run whose fourth equal call is one too many."""
        self._reasons({"blocked"} if spent != BLOCKED else set())
        if self._measuring:
            self._put(blocked=spent)
        assert spent == self._sheet().blocked, _REMEDY

    def hold_hint(self, heard: int | None) -> None:
        """Do so with how often a model heard a hint; `None` where there is no way to give one."""
        self._reasons({"hint"} if heard not in (1, None) else set())
        if self._measuring:
            self._put(hint=heard)
        assert heard == self._sheet().hint, _REMEDY

    def hold_nothing_else(self) -> None:
        """See that each committed cell is one of the integration's, and that reasons are used."""
        if self._is_oldest:
            self._put(oldest=self._versions())
        sheet = self._sheet()
        assert [cell.way for cell in sheet.cells] == list(self._integrated.ways), _REMEDY
        assert sheet.title == self._integrated.title, _REMEDY
        assert set(sheet.versions) == set(self._integrated.packages), _REMEDY
        given = {why for cell in sheet.cells for why in cell.reasons.values()}
        given |= set(sheet.reasons.values())
        assert given == {reason.why for reason in self._integrated.reasons}

    def _reasons(self, missed: set[Goal], way: str | None = None) -> dict[Goal, str]:
        found: dict[Goal, str] = {
            goal: reason.why
            for goal in GOALS
            for reason in self._integrated.reasons
            if goal in missed
            and goal == reason.goal
            and (way or "") in (reason.ways or (way or "",))
        }
        assert set(found) == missed, (
            f"not at its target, and no reason in INTEGRATED.reasons says why: "
            f"{missed - set(found)}, {way or ''}"
        )
        return found

    def _sheet(self) -> Sheet:
        if self._path.exists():
            return read(self._path)
        return Sheet(title=self._integrated.title, measured="", versions={})

    def _put(self, **changed: object) -> None:
        of_all: dict[Goal, str] = {
            reason.goal: reason.why
            for reason in self._integrated.reasons
            if reason.goal in {"blocked", "hint"}
        }
        sheet = msgspec.structs.replace(
            self._sheet(),
            title=self._integrated.title,
            measured=dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
            reasons=of_all,
            **changed,
        )
        write(self._path, sheet)

    def _versions(self) -> dict[str, str]:
        return {name: version(name) for name in self._integrated.packages}


def name_of(test_module: Path) -> str:
    """Return the name of the integration that a test module is about."""
    return test_module.stem.removeprefix("test_").removesuffix("_integration")


def cells_of(
    integrated: Integrated, test_module: Path, *, measuring: bool, is_oldest: bool
) -> Cells:
    """Return the cells of the integration that a test module is about."""
    path = FOLDER / f"{name_of(test_module)}.json"
    return Cells(integrated, path, measuring=measuring, is_oldest=is_oldest)
