"""The committed rows of one framework, and what holds them to what is measured."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import msgspec

from tests._zero_code import FIGURES, FOLDER, Figure, Row, Sheet, read, write
from tests.frameworks._framework import Framework


class Rows:
    """What is committed of a framework, or, while measuring, what becomes of it."""

    def __init__(self, framework: Framework, path: Path, *, measuring: bool) -> None:
        self._framework = framework
        self._path = path
        self._measuring = measuring

    def hold(self, measured: Row) -> None:
        """Compare a row with the committed one, or put it in its place."""
        row = msgspec.structs.replace(measured, reasons=self._reasons(measured))
        if self._measuring:
            self._put([*self._others(row), row])
        committed = self._sheet().row(row.around, row.mode)
        assert row == committed, f"{self._path.name} says otherwise; {_REMEDY}"

    def hold_nothing_else(self) -> None:
        """See that each committed row is one of the framework's, and that each reason has one."""
        if self._measuring:
            self._put([row for row in self._sheet().rows if self._key(row) in self._ways()])
        sheet = self._sheet()
        assert [self._key(row) for row in sheet.rows] == self._ways(), _REMEDY
        assert sheet.title == self._framework.title, _REMEDY
        assert set(sheet.versions) == set(self._framework.packages), _REMEDY
        given = {why for row in sheet.rows for why in row.reasons.values()}
        assert given == {reason.why for reason in self._framework.reasons}

    def _reasons(self, row: Row) -> dict[Figure, str]:
        off_target = row.off_target()
        reasons: dict[Figure, str] = {
            figure: reason.why
            for figure in FIGURES
            for reason in self._framework.reasons
            if figure in off_target and reason.explains(figure, row.around, row.mode)
        }
        assert set(reasons) == off_target, (
            f"not at its target, and no reason in FRAMEWORK.reasons says why: "
            f"{off_target - set(reasons)}, {row}"
        )
        return reasons

    def _ways(self) -> list[tuple[str, str]]:
        return [
            (around, mode)
            for around in self._framework.surroundings
            for mode in self._framework.modes
        ]

    @staticmethod
    def _key(row: Row) -> tuple[str, str]:
        return row.around, row.mode

    def _sheet(self) -> Sheet:
        if self._path.exists():
            return read(self._path)
        return Sheet(title=self._framework.title, versions={})

    def _others(self, row: Row) -> list[Row]:
        return [each for each in self._sheet().rows if self._key(each) != self._key(row)]

    def _put(self, rows: list[Row]) -> None:
        ways = self._ways()
        order = {way: place for place, way in enumerate(ways)}
        write(
            self._path,
            Sheet(
                title=self._framework.title,
                versions={name: version(name) for name in self._framework.packages},
                rows=tuple(sorted(rows, key=lambda row: order.get(self._key(row), len(ways)))),
            ),
        )


_REMEDY = "if that is meant, write it anew: see `make stopping-rows` in CONTRIBUTING.md"


def path_of(test_module: Path) -> Path:
    """Return the file of the framework that a test module is about."""
    return FOLDER / f"{test_module.stem.removeprefix('test_')}.json"
