"""What is known of mutants from runs before, kept outside the tree.

A mutant that was noticed stays so until its module changes, one that was not until its tests do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, cast

from scripts.environment import ROOT, cache

Fate: TypeAlias = Literal["killed", "survived", "timed out"]

MAKERS = [ROOT / f"scripts/mutants/{name}.py" for name in ("mutations", "places")]


class Known:
    """The fates of a module's mutants: a file to which a line is added for each."""

    def __init__(self, module: str, tests: Sequence[str], tree: Path) -> None:
        name = module.removesuffix(".py").replace("/", ".")
        source = _digest([*MAKERS, tree / "otel_loopguard" / module])
        self._path = cache() / "mutants" / f"{name}-{source}.txt"
        self._tests = _digest(_files(tests, tree))

    def fates(self) -> dict[int, Fate]:
        """Return what became of the mutants, as far as it still holds."""
        read = self._path.read_text().splitlines() if self._path.exists() else []
        lines = [line.split(" ", 2) for line in read]
        return {
            int(number): cast("Fate", fate)
            for tests, number, fate in lines
            if fate != "survived" or tests == self._tests
        }

    def forget(self) -> None:
        """Forget all."""
        self._path.unlink(missing_ok=True)

    def learn(self, number: int, fate: Fate) -> None:
        """Take note of what became of a mutant."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(f"{self._tests} {number} {fate}\n")


def _files(tests: Sequence[str], tree: Path) -> list[Path]:
    paths = [tree / "tests" / test.partition("::")[0] for test in tests]
    return [file for path in paths for file in (path, *sorted(path.glob("*.py"))) if file.is_file()]


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
