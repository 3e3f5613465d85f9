"""The exception that the caller of a stopped run gets, and how it is found in others."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable

import pytest

from otel_loopguard import (
    LoopGuard,
    Policy,
    RunAborted,
    RunInterrupted,
    RunReport,
    Step,
    abort_of,
)


def report() -> RunReport:
    guard = LoopGuard(policy=Policy.none(), max_tool_calls=1)
    guard.check(Step(kind="tool", name="search", arguments={"q": "x"}))
    guard.check(Step(kind="tool", name="search"))
    return guard.end()


ABORTED = RunAborted(report())


def caused_by(cause: BaseException | None, *, suppressed: bool = False) -> RuntimeError:
    error = RuntimeError("wrapped")
    if suppressed:
        error.__context__, error.__suppress_context__ = cause, True
    else:
        error.__cause__ = cause
    return error


class Backport(BaseException):
    """A group as it is before Python 3.11: from a package, known by its members only."""

    def __init__(self, *members: BaseException) -> None:
        self.exceptions = members


def group(*members: BaseException) -> BaseException:
    if sys.version_info >= (3, 11):
        return BaseExceptionGroup("tasks", members)  # noqa: F821 -- not on 3.10
    return Backport(*members)


def in_context_of(context: BaseException) -> RuntimeError:
    error = RuntimeError("while handling")
    error.__context__ = context
    return error


def circle() -> RuntimeError:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__cause__, other.__context__ = other, one
    return one


def circle_with_abort() -> RuntimeError:
    start = circle()
    assert start.__cause__ is not None
    start.__cause__.__cause__ = ABORTED
    return start


@pytest.mark.parametrize(
    "found_in",
    [
        ABORTED,
        caused_by(ABORTED),
        in_context_of(ABORTED),
        caused_by(ABORTED, suppressed=True),
        caused_by(in_context_of(caused_by(ABORTED))),
        group(ValueError("a"), ABORTED),
        group(group(caused_by(ABORTED)), ValueError("a")),
        group(KeyboardInterrupt(), ABORTED),
        in_context_of(group(ABORTED)),
        Backport(ValueError("a"), Backport(ABORTED)),
        circle_with_abort(),
    ],
)
def test_an_abort_is_found(found_in: BaseException) -> None:
    assert abort_of(found_in) is ABORTED


def itself(error: BaseException) -> BaseException:
    return error


@pytest.mark.parametrize("wrap", [itself, caused_by, in_context_of, group])
def test_the_base_form_is_found_as_the_ordinary_one(
    wrap: Callable[[BaseException], BaseException],
) -> None:
    interrupted = RunInterrupted(ABORTED.report, "order-4711")

    found = abort_of(wrap(interrupted))

    assert found is not None
    assert found is interrupted.aborted
    assert (found.report, found.run_id) == (ABORTED.report, "order-4711")
    assert not isinstance(interrupted, Exception)
    assert str(interrupted) == str(ABORTED)


@pytest.mark.parametrize(
    "empty",
    [
        None,
        ValueError("the loop guard stopped the run"),
        circle(),
        group(ValueError("a"), KeyboardInterrupt()),
    ],
)
def test_nothing_is_found_where_nothing_is(empty: BaseException | None) -> None:
    assert abort_of(empty) is None


def test_what_only_looks_like_a_group_is_none() -> None:
    class Batch(Exception):  # noqa: N818
        exceptions = (ABORTED, "text", None)

    class Count(Exception):  # noqa: N818
        exceptions = 7

    assert abort_of(Batch()) is ABORTED
    assert abort_of(Count()) is None


def test_a_long_chain_is_walked_without_recursion() -> None:
    error: BaseException = ABORTED
    for _ in range(50_000):
        error = caused_by(error)

    assert abort_of(error) is ABORTED
    while error.__cause__ is not None:  # taken apart by hand, or its end would recurse
        above, error.__cause__ = error.__cause__, None
        error = above


def test_it_says_why_without_content() -> None:
    assert str(ABORTED) == (
        "the loop guard stopped the run after 1 steps (0 model calls, 1 tool calls): "
        "tool_call_budget: tool 'search' at step 2: 2 against a threshold of 1 (stop)"
    )
    assert isinstance(ABORTED, Exception)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_travels_between_processes(protocol: int) -> None:
    arrived = pickle.loads(pickle.dumps(ABORTED, protocol))  # noqa: S301 -- our own

    assert isinstance(arrived, RunAborted)
    assert arrived.report == ABORTED.report
    assert str(arrived) == str(ABORTED)
    assert copy.deepcopy(ABORTED).report == ABORTED.report
    interrupted = RunInterrupted(ABORTED.report, "order-4711")
    came = pickle.loads(pickle.dumps(interrupted, protocol))  # noqa: S301 -- our own
    assert isinstance(came, RunInterrupted)
    assert (came.aborted.report, came.aborted.run_id) == (ABORTED.report, "order-4711")
