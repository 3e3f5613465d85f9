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
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.environment import ROOT
from scripts.mutants.anew import tested_anew
from scripts.mutants.in_place import InPlace, preload, usual_s
from scripts.mutants.known import Fate, Known
from scripts.mutants.mutations import Mutation, mutations_of
from scripts.mutants.runs import OPTIONS, OfOneRule, Trial, ended
from scripts.mutants.tests import modules_like, tests_of

COPIED = (
    "_otel_loopguard_pytest.py",
    "conftest.py",
    "docs",
    "otel_loopguard",
    "pyproject.toml",
    "tests",
)
SEED = 20


class Report(NamedTuple):
    """What became of a module's mutants."""

    module: str
    of: int
    """How many there are; fewer were tried where a sample was asked for."""
    fates: dict[Mutation, Fate]
    source: str


HEAD = f"{'module':38}{'mutants':>10}{'killed':>10}{'survived':>10}{'timed out':>10}  score"


def row(name: str, reports: Sequence[Report]) -> str:
    counts = Counter(fate for report in reports for fate in report.fates.values())
    tried, of = counts.total(), sum(report.of for report in reports)
    figures = (tried, counts["killed"], counts["survived"], counts["timed out"])
    score = f"{1 - counts['survived'] / tried:7.1%}" if tried else "      -"
    sampled = "" if tried == of else f"  a sample of {of}"
    return f"{name:38}" + "".join(f"{figure:10}" for figure in figures) + f"{score}{sampled}"


def survivors(report: Report) -> Iterator[str]:
    path = f"otel_loopguard/{report.module}"
    lines = report.source.splitlines()
    for mutation in sorted(m for m, fate in report.fates.items() if fate == "survived"):
        whole = lines[mutation.line - 1].strip()
        inside = "" if mutation.before == whole else f"  in  {whole}"
        yield f"{path}:{mutation.line}: {mutation.before}  ->  {mutation.after}{inside}"


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
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        tree = Path(directory)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tree / name)
        settle(tree)
        reports = [reported(module, tree, options) for module in modules]
    table = [row(report.module, [report]) for report in reports]
    print("", HEAD, *table, row("all", reports), sep="\n")
    lines = [line for report in reports for line in survivors(report)]
    print("", "survivors", *(lines or ["none"]), sep="\n")
    return 0


def settle(tree: Path) -> None:
    """Have all processes from here on find the package and its tests in the copy."""
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    os.chdir(tree)
    sys.pycache_prefix = None
    sys.path[:] = [str(tree), *(path for path in sys.path if Path(path) != ROOT)]


def reported(module: str, tree: Path, options: argparse.Namespace) -> Report:
    """Find out what becomes of a module's mutants."""
    source = (tree / "otel_loopguard" / module).read_text()
    every = mutations_of(source)
    shuffled = random.Random(SEED).sample(every, len(every))  # noqa: S311 -- the same each time
    tried = shuffled[: options.sample]
    known = Known(module, tests_of(module), tree)
    if options.fresh:
        known.forget()
    new = [mutation for mutation in tried if mutation.number not in known.fates()]
    print(f"{module}: {len(new)} of {len(every)}", file=sys.stderr, flush=True)
    if new:
        run(module, new, tree, options.jobs, known)
    fates = known.fates()
    return Report(module, len(every), {m: fates[m.number] for m in tried}, source)


def run(module: str, new: Sequence[Mutation], tree: Path, jobs: int, known: Known) -> None:
    """Run tests on mutants: in place where possible, else on ones that are imported anew."""
    output = tree / "output.txt"
    output.write_text("")
    work = (module, new, tree, jobs, known)
    process = get_context("fork").Process(target=run_in_place, args=work)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"{output.read_text()}\n{module}: its tests fail, or none is left of them")
    preload(tree)
    left = [mutation.number for mutation in new if mutation.number not in known.fates()]
    trials = [
        Trial(number, tested_anew(module, number, tests_of(module), tree), usual_s(tree))
        for number in left
    ]
    for end in ended(trials, jobs):
        known.learn(end.number, end.fate)


def run_in_place(module: str, new: Sequence[Mutation], tree: Path, jobs: int, known: Known) -> None:
    """Run tests on mutants, in a process of their own, that are put in place."""
    with (tree / "output.txt").open("a") as output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
    in_place = InPlace(module, new, tree, jobs, lambda end: known.learn(end.number, end.fate))
    tests = [f"tests/{test}" for test in tests_of(module)]
    sys.exit(pytest.main([*OPTIONS, *tests], [OfOneRule(module), in_place]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
