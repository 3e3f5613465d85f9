"""What is known of mutants from runs before, kept outside the tree.

A mutant that was noticed stays so until its module changes, one that was not until its tests do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from scripts.environment import ROOT, cache
from scripts.mutants.runs import Fate

MAKER = ROOT / "scripts/mutants/mutations.py"


class Known:
    """The fates of a module's mutants."""

    def __init__(self, module: str, tests: Sequence[str]) -> None:
        of_module = _digest(MAKER, ROOT / "otel_loopguard" / module)
        name = module.removesuffix(".py").replace("/", ".")
        self._path = cache() / "mutants" / f"{name}-{of_module}.json"
        paths = [ROOT / "tests" / test for test in tests]
        files = [file for path in paths for file in ([path], sorted(path.glob("*.py")))[path.is_dir()]]
        self._tests = _digest(*files)
        read = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._fates: dict[str, tuple[Fate, str]] = read

    def fate(self, number: int) -> Fate | None:
        """Return what became of a mutant, if that still holds."""
        fate, tests = self._fates.get(str(number), (None, ""))
        return None if fate == "survived" and tests != self._tests else fate

    def learn(self, number: int, fate: Fate) -> None:
        """Take note of what became of a mutant."""
        self._fates[str(number)] = fate, self._tests

    def keep(self) -> None:
        """Write down what is known."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._fates))


def _digest(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
