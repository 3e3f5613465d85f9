"""Changes the package in one place at a time, and says which changes no test notices.

    python -m scripts.mutants [MODULE...] [--sample N] [--jobs N] [--fresh]

A module is a path or a pattern below `otel_loopguard/`: `guard.py`, `detectors/*.py`. Without any,
all modules are taken for which `tests.py` says which tests are theirs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.environment import ROOT
from scripts.mutants.known import Known
from scripts.mutants.mutations import Mutation, mutations_of
from scripts.mutants.runs import Fate, Mutant, fates, preload
from scripts.mutants.tests import modules_like, tests_of

COPIED = ("conftest.py", "docs", "otel_loopguard", "pyproject.toml", "tests")
SEED = 20


class Report(NamedTuple):
    """What became of a module's mutants."""

    module: str
    of: int
    """How many there are; fewer were tried where a sample was asked for."""
    fates: dict[Mutation, Fate]

    def row(self) -> str:
        counts = Counter(self.fates.values())
        tried = len(self.fates)
        score = f"{1 - counts['survived'] / tried:7.1%}" if tried else "      -"
        sampled = "" if tried == self.of else f"  of {self.of}"
        figures = (tried, counts["killed"], counts["survived"], counts["timed out"])
        return f"{self.module:38}" + "".join(f"{n:10}" for n in figures) + f"{score}{sampled}"

    def survivors(self) -> Iterator[str]:
        lines = (ROOT / "otel_loopguard" / self.module).read_text().splitlines()
        for mutation in sorted(m for m, fate in self.fates.items() if fate == "survived"):
            place = f"otel_loopguard/{self.module}:{mutation.line}"
            yield f"{place}: {mutation.before}  ->  {mutation.after}"
            if mutation.before != (whole := lines[mutation.line - 1].strip()):
                yield f"        in: {whole}"


HEAD = f"{'module':38}{'mutants':>10}{'killed':>10}{'survived':>10}{'timed out':>10}  score"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help="paths or patterns below otel_loopguard/")
    parser.add_argument("--sample", type=int, metavar="N", help="at most so many of each module")
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="believe nothing from runs before")
    options = parser.parse_args(arguments)
    modules = modules_like(options.modules)
    if not modules:
        parser.error(f"no tests are named for {options.modules!r}: see scripts/mutants/tests.py")
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        tree = Path(directory)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tree / name)
        reports = [reported(module, tree, options) for module in modules]
    print(f"\n{HEAD}")
    print("\n".join(report.row() for report in reports))
    every = {(r.module, m): fate for r in reports for m, fate in r.fates.items()}
    print(Report("all", sum(report.of for report in reports), every).row())
    print("\nsurvivors")
    print("\n".join(line for report in reports for line in report.survivors()) or "none")
    return 0


def reported(module: str, tree: Path, options: argparse.Namespace) -> Report:
    """Find out what becomes of a module's mutants."""
    source = (tree / "otel_loopguard" / module).read_text()
    every = mutations_of(source)
    tests = tests_of(module)
    known = Known(module, tests)
    few = options.sample is not None and options.sample < len(every)
    tried = random.Random(SEED).sample(every, options.sample) if few else every  # noqa: S311
    found = {m: None if options.fresh else known.fate(m.number) for m in tried}
    left = {m.number: m for m, fate in found.items() if fate is None}
    if left:
        print(f"{module}: {len(left)} of {len(every)}", file=sys.stderr, flush=True)
        usual_s = time_of(module, tests, tree)
        mutants = [Mutant(module, number, tests) for number in left]
        try:
            for ended in fates(mutants, tree, usual_s, options.jobs):
                known.learn(ended.mutant.number, ended.fate)
                found[left[ended.mutant.number]] = ended.fate
        finally:
            known.keep()
    return Report(module, len(every), found)


def time_of(module: str, tests: Sequence[str], tree: Path) -> float:
    """Return the processor time that the tests take on the module as it is."""
    output = tree / "output.txt"
    output.write_text("")
    (whole,) = fates([Mutant(module, None, tests)], tree, 600, 1)
    if whole.fate != "survived":
        sys.exit(f"{output.read_text()}\n{module}: its tests fail without any change")
    return whole.cpu_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
