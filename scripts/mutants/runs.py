"""Runs the tests of a module on mutants of it: a forked process each, and some side by side.

What takes long to import is imported once, before the first fork. A mutant exists in its process
only: an import hook hands out its code, and no file is ever changed.
"""

from __future__ import annotations

import importlib
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal, NamedTuple, TypeAlias

import pytest

from scripts.environment import ROOT
from scripts.mutants.mutations import mutated
from scripts.mutants.tests import rule_of, rules

Fate: TypeAlias = Literal["killed", "survived", "timed out"]

PRELOADED = ("hypothesis", "msgspec", "opentelemetry.sdk.trace", "pydantic", "sybil")
OPTIONS = (
    *("-x", "-q", "--tb=native", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is preloaded
)
PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
MEMORY = 4 << 30
"""Bytes that a mutant may use: one that never stops appending is noticed too."""
SPARE_S = 5


class Mutant(NamedTuple):
    """A module of the package with one mutation; none where `number` is `None`."""

    module: str
    """The path of its file below the package."""
    number: int | None
    tests: Sequence[str]


class Ended(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    fate: Fate
    cpu_s: float


class _Child(NamedTuple):
    mutant: Mutant
    stopped_s: float
    """When it is stopped, whatever it is doing or waiting for."""


def preload() -> None:
    """Import what all tests import."""
    for name in PRELOADED:
        importlib.import_module(name)


def fates(mutants: Sequence[Mutant], tree: Path, usual_s: float, jobs: int) -> Iterator[Ended]:
    """Run mutants and yield what became of each, in the order in which they end.

    `usual_s` is the processor time that their tests take where nothing is changed.
    """
    limit_s = math.ceil(3 * usual_s) + SPARE_S
    waiting, running = list(reversed(mutants)), dict[int, _Child]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            stopped_s = time.monotonic() + 4 * limit_s
            running[_forked(mutant, tree, limit_s)] = _Child(mutant, stopped_s)
        for process in [*running]:
            ended = _ended(process, running[process])
            if ended is not None:
                del running[process]
                yield ended
        time.sleep(0.002)


def _ended(process: int, child: _Child) -> Ended | None:
    """Return what became of a mutant, if it has ended or had to be stopped."""
    stopped = time.monotonic() > child.stopped_s
    if stopped:
        os.kill(process, signal.SIGKILL)
    which, status, usage = os.wait4(process, 0 if stopped else os.WNOHANG)
    if which == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    fate: Fate = "timed out" if code < 0 else "killed" if code else "survived"
    return Ended(child.mutant, fate, usage.ru_utime + usage.ru_stime)


def _forked(mutant: Mutant, tree: Path, limit_s: int) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            code = _tested(mutant, tree, limit_s)
        except BaseException:  # noqa: BLE001 -- nothing may get out: the parent's stack is above
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return process


def _tested(mutant: Mutant, tree: Path, limit_s: int) -> int:
    """Run the tests, in a process of their own, and return pytest's exit code."""
    output = os.open(tree / "output.txt" if mutant.number is None else os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(output, descriptor)
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(tree)
    sys.pycache_prefix = None
    sys.path = [str(tree), *(path for path in sys.path if Path(path) != ROOT)]
    if mutant.number is not None:
        sys.meta_path.insert(0, _Finder(mutant.module, mutant.number, tree))
    plugin = _OfOneRule(mutant.module)
    codes = (pytest.main([*OPTIONS, f"tests/{test}"], [plugin]) for test in mutant.tests)
    return next((int(code) for code in codes if code not in PASSED), 0)


class _OfOneRule:
    """Leaves out what tests that are made for each rule do for the others."""

    def __init__(self, module: str) -> None:
        rule = rule_of(module)
        self._others = frozenset[str]() if rule is None else rules() - {rule}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect them."""
        parts = {item: frozenset(item.name.partition("[")[2][:-1].split("-")) for item in items}
        others = [item for item in items if parts[item] & self._others]
        items[:] = [item for item in items if not parts[item] & self._others]
        config.hook.pytest_deselected(items=others)


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
