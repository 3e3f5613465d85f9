"""The rooms of the pytest plugin: imported by the first test that asks for a guard.

The hooks and fixtures themselves stand in `_otel_loopguard_pytest`, which imports nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from otel_loopguard.integrations import attach
from otel_loopguard.policy import PolicyError
from otel_loopguard.processor import LoopGuardSpanProcessor
from otel_loopguard.testing.capture import Capture
from otel_loopguard.testing.counted import refuse
from otel_loopguard.testing.evidence import command_line, evidence, write_evidence
from otel_loopguard.testing.fake_clock import FakeClock
from otel_loopguard.testing.marking import Marking, MarkingError, marking_of
from otel_loopguard.testing.span_tap import span_tap
from otel_loopguard.testing.stop_raised import rule_of, stops_in
from otel_loopguard.testing.tested import RunsOfTest, runs_of_test, summary
from otel_loopguard.testing.to_check import things_to_check

if TYPE_CHECKING:
    from otel_loopguard.testing.model_server import ModelServer


class _Watched(NamedTuple):
    """A test that is being watched."""

    capture: Capture
    marking: Marking | None


_WATCHED = pytest.StashKey[_Watched]()
_MODELS = pytest.StashKey[list[object]]()
_UNWATCHED = (
    "nobody has looked at what the marker loopguard says: another fixture is named `loopguard`; "
    "rename it"
)
_TESTED = pytest.StashKey[list[RunsOfTest]]()


@contextmanager
def capturing(request: pytest.FixtureRequest) -> Generator[Capture]:
    """Observe every guard for one test, behind the guard that its marker asks for."""
    item: pytest.Item = request.node
    marking = _marking_of(item)
    if isinstance(marking, str):
        pytest.fail(marking, pytrace=False)
    capture = Capture(contents=bool(item.config.getoption("loopguard_contents")))
    capture.models = item.stash.setdefault(_MODELS, [])
    item.stash[_WATCHED] = _Watched(capture, marking)
    with capture, _guarding(request, marking):
        yield capture


def _marking_of(item: pytest.Item) -> Marking | str | None:
    """Return what the markers of a test say together, or what is wrong with them."""
    try:
        return marking_of((mark.args, mark.kwargs) for mark in item.iter_markers("loopguard"))
    except (MarkingError, PolicyError) as error:
        return str(error)


@contextmanager
def _guarding(request: pytest.FixtureRequest, marking: Marking | None) -> Generator[None]:
    """Put the guard of the marker in place, beside those of the user."""
    if marking is None or marking.policy is None:
        yield
        return
    clock: Callable[[], float] = time.monotonic
    if "loopguard_clock" in request.fixturenames:
        clock = request.getfixturevalue("loopguard_clock")
    guard = LoopGuardSpanProcessor(marking.policy, mode="enforce", clock=clock)
    span_tap().open(guard)
    attach(guard)
    try:
        yield
    finally:
        span_tap().close(guard)
        guard.shutdown()


def fake_clock() -> FakeClock:
    """Return a clock that is moved by hand."""
    return FakeClock()


@contextmanager
def serving(request: pytest.FixtureRequest) -> Generator[ModelServer]:
    """Serve a scripted model to one test, whose runaways it ends when their time is over."""
    from otel_loopguard.testing import model_server  # noqa: PLC0415 -- its parts may be missing

    with model_server() as server:
        item: pytest.Item = request.node
        item.stash.setdefault(_MODELS, []).append(server)
        yield server


@contextmanager
def timing(item: pytest.Item) -> Generator[None]:
    """Have the servers of a test refuse when its time is over: a runaway of theirs ends by it."""
    watched = item.stash.get(_WATCHED, None)
    marking = None if watched is None else watched.marking
    models = item.stash.get(_MODELS, list[object]())
    if marking is None or marking.timeout_s is None or not models:
        yield
        return
    reason = f"the test has not ended within {marking.timeout_s:g} s, the timeout of its marker"
    timer = threading.Timer(marking.timeout_s, refuse, (models, reason))
    timer.name = "loopguard-marked-test"
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def judge(item: pytest.Item, error: BaseException | None) -> BaseException | None:
    """Return what a test is to fail with, given what it raised.

    One whose marker names the rule that stopped it need not catch the stop itself.
    """
    watched = item.stash.get(_WATCHED, None)
    if watched is None:
        return error or pytest.fail.Exception(_UNWATCHED, pytrace=False)
    marking = watched.marking
    if marking is None:
        return error
    capture = watched.capture
    stops = stops_in(error)
    if error is not None and not stops:
        return error
    runs = capture.runs()
    fault = marking.fault(runs)
    if fault is None:
        named = {marking.trips, None} if marking.trips is not None else set[str | None]()
        return None if {rule_of(stop) for stop in stops} <= named else error
    parts = [fault, "", capture.tree() or "no span of an agent or a call was seen"]
    if marking.trips is not None:
        checks = things_to_check(runs, capture.spans_since(0))
        parts += ["", *(f"check: {each}" for each in checks)] if checks else []
    return pytest.fail.Exception("\n".join(parts), pytrace=False)


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    """Write into a test's report what its runs have come to, as plain data."""
    watched = item.stash.get(_WATCHED, None)
    if watched is not None and report.when == "call":
        made = runs_of_test(item.nodeid, watched.capture, watched.marking, report.outcome)
        vars(report)["loopguard"] = msgspec.to_builtins(made)


def take(config: pytest.Config, found: object) -> None:
    """Take in what the report of a test says, from this process or a worker's."""
    _all_tested(config).append(msgspec.convert(found, RunsOfTest))


def summarise(config: pytest.Config) -> str:
    """Return what all runs have come to, in one line; empty if there were none."""
    return summary(_all_tested(config))


def write(config: pytest.Config, path: str) -> None:
    """Write the evidence of all tests to a file, named from where pytest was started."""
    made = evidence(_all_tested(config), command_line(), config.rootpath)
    write_evidence(Path(config.invocation_params.dir, path), made)


def _all_tested(config: pytest.Config) -> list[RunsOfTest]:
    return config.stash.setdefault(_TESTED, list[RunsOfTest]())
