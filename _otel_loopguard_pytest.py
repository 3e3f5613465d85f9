"""What pytest loads of otel-loopguard in every session: next to nothing.

It stands outside the package, because importing that takes OpenTelemetry's SDK along, which costs
the sessions of those who only have it installed, and code that coverage is to see imported. All
the rest is in `otel_loopguard.pytest_plugin`, and is imported by the first test that asks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from otel_loopguard.testing.capture import Capture
    from otel_loopguard.testing.fake_clock import FakeClock
    from otel_loopguard.testing.model_server import ModelServer

_ROOMS = "otel_loopguard.pytest_plugin"
_MUTATION_CHECK = "LOOPGUARD_MUTATION_CHECK"
"""Set by `otel-loopguard mutation-check` alone."""
_MARKER = (
    "loopguard(policy=None, *, trips=None, at=None, timeout=10, kind=None, recording=None, "
    "**limits): put an enforcing guard with this policy, or these limits, in place; fail unless "
    "the rule `trips` trips at step `at`, and without `trips` if any run trips; after `timeout` "
    "seconds have `model_server` refuse."
)


def _rooms() -> Any:
    return import_module(_ROOMS)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("loopguard", "tests of guards against runaway agents")
    group.addoption(
        "--loopguard-evidence",
        metavar="FILE",
        help="write what tests of guards expected and observed to a JSON file",
    )
    group.addoption(
        "--loopguard-contents",
        action="store_true",
        help="show arguments, results and answers where a test fails, not their fingerprints",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker takes; refuse a place for evidence that is no file's."""
    path = config.getoption("loopguard_evidence")
    if path and (config.invocation_params.dir / path).is_dir():
        raise pytest.UsageError(f"--loopguard-evidence={path}: expected a file, got a directory")
    config.addinivalue_line("markers", _MARKER)
    if _MUTATION_CHECK in os.environ:
        import_module("otel_loopguard.testing.mutation_session").begin(config)
    if not hasattr(config, "workerinput"):  # one of xdist's workers tells its controller
        config.pluginmanager.register(_Session(config), "loopguard-session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test with the marker the fixture that heeds it."""
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("loopguard"):
            names = item.fixturenames
            if "loopguard" not in names:
                names.insert(0, "loopguard")


@pytest.fixture
def loopguard(request: pytest.FixtureRequest) -> Generator[Capture]:
    """Observe every guard of the process while the test runs, and its spans."""
    with _rooms().capturing(request) as capture:
        yield capture


@pytest.fixture
def loopguard_clock() -> FakeClock:
    """A clock that stands still until it is moved; the guard of the marker goes by it."""
    clock: FakeClock = _rooms().fake_clock()
    return clock


@pytest.fixture
def model_server(request: pytest.FixtureRequest) -> Generator[ModelServer]:
    """A scripted model on loopback that never lets an agent finish; `play` another script."""
    with _rooms().serving(request) as server:
        yield server


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any]:
    """Fail a test whose runs have not done what its marker says."""
    if item.get_closest_marker("loopguard") is None or not isinstance(item, pytest.Function):
        yield
        return
    with _rooms().timing(item):
        outcome = yield
    error = None if outcome.excinfo is None else outcome.excinfo[1]
    judged = _rooms().judge(item, error)
    if judged is None:
        outcome.force_result(None)
    elif judged is not error:
        outcome.force_exception(judged)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any]:
    """Let the report say what the test's runs have come to; it travels from xdist's workers."""
    outcome = yield
    rooms = sys.modules.get(_ROOMS)  # there if any test has had the fixture
    if rooms is not None:
        rooms.note(item, outcome.get_result())


class _Session:
    """Takes in what tests come to, in the process that says so."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_used = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "loopguard", None)
        if found is not None:
            self._is_used = True
            _rooms().take(self._config, found)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        line = _rooms().summarise(self._config) if self._is_used else ""
        if line:
            terminalreporter.write_line(line)

    def pytest_sessionfinish(self) -> None:
        path = self._config.getoption("loopguard_evidence")
        if path:
            _rooms().write(self._config, path)
