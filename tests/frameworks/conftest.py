"""Fixtures of the contract tests; each test module names its framework in `FRAMEWORK`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from operator import attrgetter
from pathlib import Path

import pytest

from otel_loopguard import AbortRequest
from otel_loopguard.testing import model_server
from tests.frameworks._cells import Cells, cells_of
from tests.frameworks._framework import Framework
from tests.frameworks._integrated import Integrated
from tests.frameworks._rows import Rows, path_of
from tests.frameworks._stage import Stage
from tests.frameworks._workbench import Counts, Stopped, Workbench

REQUESTS = 40
"""Requests of one script after which a server refuses more, whatever went wrong."""


framework_of: Callable[[object], Framework] = attrgetter("module.FRAMEWORK")
"""Returns the framework that a test's module describes."""


integrated_of: Callable[[object], Integrated] = attrgetter("module.INTEGRATED")
"""Returns the integration that a test's module describes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let what was measured be written instead of compared, and every way be tried."""
    parser.addoption("--measure", action="store_true", help="write what is measured anew")
    parser.addoption("--oldest", action="store_true", help="note the versions as the oldest ones")
    parser.addoption("--every-way", action="store_true", help="try all ways to run an agent")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for every way to run an agent that it is about."""
    for name in ("mode", "blocking_mode", "awaited_mode", "stopped"):
        if name in metafunc.fixturenames:
            framework = framework_of(metafunc)
            chosen = {"blocking_mode": framework.blocking, "awaited_mode": framework.awaited}
            modes = chosen.get(name, {**framework.blocking, **framework.awaited})
            shared = name == "stopped"
            metafunc.parametrize(
                name, tuple(modes), indirect=shared, scope="module" if shared else None
            )
    for name in ("way", "plain_way"):
        module: object = getattr(metafunc, "module", None)
        integrated: Integrated | None = getattr(module, "INTEGRATED", None)
        if name in metafunc.fixturenames and integrated is not None:
            ways = (*[*integrated.blocking][:1], *[*integrated.awaited][:1])
            if metafunc.config.getoption("--every-way"):
                ways = integrated.ways
            plain = integrated.plain_ways
            metafunc.parametrize(name, [w for w in ways if name == "way" or w in plain])
    if "surroundings" in metafunc.fixturenames:
        metafunc.parametrize("surroundings", framework_of(metafunc).surroundings)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Generator[Workbench]:
    """The framework of this module in front of a scripted server of its own."""
    with model_server(cap=REQUESTS) as server:
        yield Workbench(framework_of(request), server)


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Generator[Stage]:
    """The integration of this module in front of a scripted server of its own."""
    with model_server(cap=REQUESTS) as server:
        yield Stage(integrated_of(request), server)


@pytest.fixture
def cells(request: pytest.FixtureRequest) -> Cells:
    """The committed cells of this module's integration."""
    measuring = bool(request.config.getoption("--measure", default=False))
    is_oldest = bool(request.config.getoption("--oldest", default=False))
    return cells_of(integrated_of(request), request.path, measuring=measuring, is_oldest=is_oldest)


@pytest.fixture
def rows(request: pytest.FixtureRequest) -> Rows:
    """The committed rows of this module's framework."""
    measuring = bool(request.config.getoption("--measure", default=False))
    return Rows(framework_of(request), path_of(request.path), measuring=measuring)


@pytest.fixture(scope="module")
def stopped(request: pytest.FixtureRequest) -> Stopped:
    """A runaway that was stopped; several tests look at what it left behind."""
    at_the_trip: list[Counts] = []

    def hook(_: AbortRequest) -> None:
        at_the_trip.append(scene.counts())

    with model_server(cap=REQUESTS) as server:
        bench = Workbench(framework_of(request), server)
        with bench.guarded(abort_hooks=[hook]) as scene:
            outcome = scene.play(request.param)
    return Stopped(scene, outcome, at_the_trip)


@pytest.fixture
def example(stage: Stage, request: pytest.FixtureRequest) -> Path:
    """What the page shows; only the oldest supported version may be too old for it."""
    path = stage.integrated.example
    if path is None:
        assert request.config.getoption("--oldest"), "the newest version has an example"
        pytest.skip("the example wants a newer version")
    return path
