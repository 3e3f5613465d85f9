"""Runs the tests with a mutant that is imported anew: for what is worked out at import.

An import hook hands out the mutant's code, and no file is ever changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from scripts.mutants.mutations import mutated
from scripts.mutants.runs import OPTIONS, OfOneRule

PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def tested_anew(module: str, number: int, tests: Sequence[str], tree: Path) -> Callable[[], int]:
    """Return what imports the mutant and runs the tests, one file after the other."""

    def test() -> int:
        sys.meta_path.insert(0, _Finder(module, number, tree))
        codes = (pytest.main([*OPTIONS, f"tests/{test}"], [OfOneRule(module)]) for test in tests)
        return next((int(code) for code in codes if code not in PASSED), 0)

    return test


class _Finder(MetaPathFinder):
    """Finds the mutant where its module is imported."""

    def __init__(self, module: str, number: int, tree: Path) -> None:
        self._path = tree / "otel_loopguard" / module
        dotted = ".".join(("otel_loopguard", *Path(module).with_suffix("").parts))
        self._name = dotted.removesuffix(".__init__")
        self._number = number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for one module only."""
        del path, target
        if fullname != self._name:
            return None
        loader = _Loader(fullname, str(self._path))
        loader.number = self._number
        return spec_from_file_location(fullname, self._path, loader=loader)


class _Loader(SourceFileLoader):
    """Loads a module with one mutation."""

    number = -1

    def get_code(self, fullname: str) -> CodeType:
        """Compile it anew: what is cached is the module as it was written."""
        return mutated(Path(self.path).read_text(), self.number, self.get_filename(fullname))
