"""Runs tests with a mutant put in the place of a function of a program that is loaded already.

That takes a tenth of the time of loading it anew, and tests that never call the function need not
run. It cannot show what is worked out while modules are imported and tests collected: functions
that are called by then are left to `anew.py`, and all of them before Python 3.12.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TypeAlias

import pytest

from scripts.mutants.mutations import Function, Mutation, mutated
from scripts.mutants.runs import Ended, Trial, ended

Learn: TypeAlias = Callable[[Ended], None]
Called: TypeAlias = "list[tuple[pytest.Item, float, frozenset[Function]]]"
"""Each test, the seconds that it takes, and the functions that it calls."""

STARTING_S = 3
"""For importing the package and collecting its tests."""
IMPORTED = "imported.json"
MEASURED = "measured.json"


class InPlace:
    """For pytest: runs the tests once as they are, and then on mutants."""

    def __init__(
        self, module: str, mutations: Sequence[Mutation], tree: Path, jobs: int, learn: Learn
    ) -> None:
        self._tree = tree
        self._path = tree / "otel_loopguard" / module
        self._measured = tree / MEASURED
        self._output = tree / "output.txt"
        self._mutations = mutations
        self._jobs = jobs
        self._learn = learn
        self._calls = _Calls(str(self._path))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run them."""
        early = self._calls.taken()
        foreign = [name for name, module in sys.modules.items() if not self._is_ours(module)]
        (self._tree / IMPORTED).write_text(json.dumps(foreign))
        if session.testsfailed:
            raise session.Failed("not all tests could be collected")
        whole = Trial(-1, lambda: self._measure(session), output=self._output)
        if any(end.fate != "survived" for end in ended([whole], 1)):
            raise session.Failed("the tests fail without any change")
        self._calls.stop()
        called = self._called(session.items)
        known = sys.version_info >= (3, 12)
        later = [m for m in self._mutations if known and m.function and m.function not in early]
        for end in ended([*self._trials(session, later, called)], self._jobs):
            self._learn(end)
        return True

    def _is_ours(self, module: ModuleType) -> bool:
        return (getattr(module, "__file__", None) or "").startswith(str(self._tree))

    def _measure(self, session: pytest.Session) -> int:
        """Write down how long each test takes and what it calls, and return 0 if all pass."""
        measured: list[tuple[float, list[Function]]] = []
        for item in session.items:
            self._calls.taken()
            began_s = time.perf_counter()
            code = _run(session, [item])
            if code:
                with self._output.open("a") as output:
                    output.write(f"\n{item.nodeid} fails with HYPOTHESIS_PROFILE=mutants\n")
                return code
            measured.append((time.perf_counter() - began_s, list(self._calls.taken())))
        self._measured.write_text(json.dumps(measured))
        return 0

    def _called(self, items: Sequence[pytest.Item]) -> Called:
        """Return the tests, the quickest first."""
        measured = json.loads(self._measured.read_text())
        called = [
            (item, seconds, frozenset((name, line) for name, line in functions))
            for item, (seconds, functions) in zip(items, measured, strict=True)
        ]
        return sorted(called, key=lambda entry: entry[1])

    def _trials(
        self, session: pytest.Session, mutations: Sequence[Mutation], called: Called
    ) -> Iterator[Trial]:
        source, live = self._path.read_text(), functions_of(self._path)
        if mutations and not live:
            raise RuntimeError(f"no function of {self._path} was found: nothing would be changed")
        for mutation in mutations:
            code = mutated(source, mutation.number, str(self._path))
            if not _fits(code, live):
                continue
            mine = [(item, took) for item, took, calls in called if mutation.function in calls]
            items = [item for item, _ in mine]

            def test(code: CodeType = code, items: Sequence[pytest.Item] = items) -> int:
                put(code, live)
                return _run(session, items)

            yield Trial(mutation.number, test, sum(seconds for _, seconds in mine))


def _run(session: pytest.Session, items: Sequence[pytest.Item]) -> int:
    for item, following in zip_longest(items, items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def preload(tree: Path) -> None:
    """Import what the tests import from elsewhere: once, not in each process that runs them."""
    for name in json.loads((tree / IMPORTED).read_text()):
        with suppress(Exception):  # what cannot be imported alone is not worth it
            importlib.import_module(name)


def usual_s(tree: Path) -> float:
    """Return how long the tests take where nothing is changed, once they have been run so."""
    measured: list[tuple[float, object]] = json.loads((tree / MEASURED).read_text())
    return STARTING_S + sum(seconds for seconds, _ in measured)


def put(code: CodeType, live: Sequence[FunctionType]) -> None:
    """Put the functions of a module's code in the place of those that are loaded."""
    new = _codes(code)
    for function in live:
        function.__code__ = new[_key(function.__code__)]


def _fits(code: CodeType, live: Sequence[FunctionType]) -> bool:
    """Say whether that is possible: not where another variable is taken from around a function."""
    new, codes = _codes(code), [function.__code__ for function in live]
    return all(_key(old) in new and new[_key(old)].co_freevars == old.co_freevars for old in codes)


def functions_of(path: Path) -> list[FunctionType]:
    """Return the functions of a module that are there to be changed."""
    gc.unfreeze()  # `conftest.py` has frozen what is there: nobody would find it
    found = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    return [function for function in found if function.__code__.co_filename == str(path)]


def _codes(code: CodeType) -> dict[Function, CodeType]:
    inside = [part for part in code.co_consts if isinstance(part, CodeType)]
    return {_key(code): code} | {k: c for part in inside for k, c in _codes(part).items()}


def _key(code: CodeType) -> Function:
    return code.co_name, code.co_firstlineno


class _Calls:
    """Which functions of a module are called."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: set[Function] = set()
        if sys.version_info >= (3, 12):
            events = sys.monitoring.events.PY_START
            sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "mutants")
            sys.monitoring.register_callback(sys.monitoring.PROFILER_ID, events, self._started)
            sys.monitoring.set_events(sys.monitoring.PROFILER_ID, events)

    def _started(self, code: CodeType, _: int) -> object:
        if code.co_filename == self._path:
            self._seen.add(_key(code))
        if sys.version_info >= (3, 12):
            return sys.monitoring.DISABLE
        return None

    def taken(self) -> set[Function]:
        """Return those called since the last time."""
        seen, self._seen = self._seen, set()
        if sys.version_info >= (3, 12):
            sys.monitoring.restart_events()
        return seen

    def stop(self) -> None:
        """Watch no more."""
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.PROFILER_ID, 0)
            sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
