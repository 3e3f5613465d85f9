"""Whether what a run has raised is a stop, or a failure that came while one was handled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from otel_loopguard.abort.aborted import RunAborted, RunInterrupted, parts_of
from otel_loopguard.decisions import LoopGuardError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Stop: TypeAlias = RunAborted | LoopGuardError
"""What ends a run: a guard's stop, or a loop's own."""

_MISTAKES = (
    *(AssertionError, ArithmeticError, AttributeError, LookupError, NameError, TypeError),
    *(KeyboardInterrupt, SystemExit),
)
"""No framework wraps a stop in one of them: code that handled the stop has failed."""


def is_stop(error: BaseException | None) -> bool:
    """Say whether an exception is a stop: `RunAborted` in any wrapping, or a loop's own."""
    return bool(stops_in(error))


def stops_in(error: BaseException | None) -> tuple[Stop, ...]:
    """Return the stops that an exception is, wraps or groups; none where a part failed by itself.

    What is raised while a stop is handled, without `from`, wraps it only if it may be a framework's
    own: an assertion that fails there, or an outcome of a test runner, does not.
    """
    parts = tuple(parts_of(error, _is_failure))
    if any(_is_failure(part) for part in parts[1:] if part.__context__ is None):
        return ()  # a group has it beside the stop
    found = [part.aborted if isinstance(part, RunInterrupted) else part for part in parts]
    return tuple(part for part in found if isinstance(part, Stop))


def rule_of(stop: Stop) -> str | None:
    """Return the rule that it is about; `None` where the stop is that of a run around it."""
    if isinstance(stop, RunAborted):
        return stop.report.rule
    return stop.decision.rule


def is_failure_of_handler(error: BaseException | None) -> bool:
    """Say whether it was raised while a stop was handled, and is none."""
    return error is not None and _is_failure(error) and is_stop(error.__context__)


def is_outcome(error: BaseException | None) -> TypeIs[BaseException]:
    """Say whether pytest ends a test with it: skipped, failed. This module knows no pytest."""
    return any(kind.__name__ == "OutcomeException" for kind in type(error).__mro__)


def _is_failure(error: BaseException) -> bool:
    """Say whether it is a mistake in code, or what a test runner ends a test with."""
    is_group = isinstance(getattr(error, "exceptions", None), tuple)  # no type before 3.11
    if is_group or isinstance(error, (RunInterrupted, asyncio.CancelledError)):
        return False
    return isinstance(error, _MISTAKES) or not isinstance(error, Exception)
