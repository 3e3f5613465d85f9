"""A pytest session of a mutation check: the change is made, and what the tests say is written."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from otel_loopguard.testing.mutations import VARIABLE, Heard, Order, apply, watch


class MutationSession:
    """Writes what the tests of one process have said, when its session ends."""

    def __init__(self, report: Path, heard: Heard, *, counts: bool) -> None:
        """Add a line to `report`; only where it `counts` are outcomes of tests noted."""
        self._report = report
        self._heard = heard
        self._counts = counts

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that ran, or failed."""
        if not self._counts:
            return
        self._heard.ran += report.when == "call" and report.outcome != "skipped"
        if report.failed and report.nodeid not in self._heard.failed:
            self._heard.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the line."""
        with self._report.open("ab") as file:
            file.write(msgspec.json.encode(self._heard) + b"\n")


def begin(config: pytest.Config) -> None:
    """Make the change that the variable names, in this process and for this session."""
    order = msgspec.json.decode(os.environ[VARIABLE], type=Order)
    heard = Heard()
    watch(heard)
    if order.change is not None:
        apply(order.change)
    is_worker = hasattr(config, "workerinput")
    session = MutationSession(Path(order.report), heard, counts=not is_worker)
    config.pluginmanager.register(session, "loopguard-mutation-session")
