"""Runs each mutant in a forked process of its own, some side by side, in bounded time."""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.mutants.known import Fate
from scripts.mutants.tests import rule_of, rules

OPTIONS = (
    *("-x", "-q", "--tb=native", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is imported beforehand
)
MEMORY = 4 << 30
"""Bytes that a mutant may use: one that never stops appending is noticed too."""


class Trial(NamedTuple):
    """A mutant to be run, or the module as it is."""

    number: int
    test: Callable[[], int]
    """Returns 0 if all tests pass."""
    usual_s: float = 600
    """The processor time that its tests take where nothing is changed."""
    output: Path = Path(os.devnull)

    @property
    def limit_s(self) -> int:
        """The processor time that it may take."""
        return math.ceil(3 * self.usual_s) + 5


class Ended(NamedTuple):
    """What became of a mutant."""

    number: int
    fate: Fate
    cpu_s: float


class _Running(NamedTuple):
    number: int
    stopped_s: float
    """When it is stopped, whatever it is doing or waiting for."""


def ended(trials: Sequence[Trial], jobs: int) -> Iterator[Ended]:
    """Run mutants and yield what became of each, in the order in which they end."""
    waiting, running = list(reversed(trials)), dict[int, _Running]()
    while waiting or running:
        while waiting and len(running) < jobs:
            trial = waiting.pop()
            stopped_s = time.monotonic() + 4 * trial.limit_s
            running[_forked(trial)] = _Running(trial.number, stopped_s)
        for process in [*running]:
            end = _end_of(process, running[process])
            if end is not None:
                del running[process]
                yield end
        time.sleep(0.002)


def _end_of(process: int, of: _Running) -> Ended | None:
    """Return what became of a mutant, if it has ended or had to be stopped."""
    stopped = time.monotonic() > of.stopped_s
    if stopped:
        os.kill(process, signal.SIGKILL)
    which, status, usage = os.wait4(process, 0 if stopped else os.WNOHANG)
    if which == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    fate: Fate = "timed out" if code < 0 else "killed" if code else "survived"
    return Ended(of.number, fate, usage.ru_utime + usage.ru_stime)


def _forked(trial: Trial) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        file = os.open(trial.output, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(file, descriptor)
        resource.setrlimit(resource.RLIMIT_CPU, (trial.limit_s, trial.limit_s))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        code = trial.test()
    except BaseException:  # noqa: BLE001 -- nothing may get out: the parent's stack is above
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class OfOneRule:
    """For pytest: leaves out what tests that are made for each rule do for the other rules."""

    def __init__(self, module: str) -> None:
        rule = rule_of(module)
        self._others = frozenset[str]() if rule is None else rules() - {rule}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave them out."""
        parts = {item: frozenset(item.name.partition("[")[2][:-1].split("-")) for item in items}
        items[:] = [item for item in items if not parts[item] & self._others]
