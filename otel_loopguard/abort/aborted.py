"""What the caller of a stopped run gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

from otel_loopguard.decisions import RunReport
from otel_loopguard.options.kinds import AbortException


class RunAborted(Exception):  # noqa: N818 -- not an error of the application: a run was stopped
    """The loop guard stopped the run; `report` says why and what it had done.

    An ordinary exception, so that frameworks clean up as they do for any other. They often wrap it:
    use `abort_of(exception)`, or a `guarded_run()` block, to get at it.
    """

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        super().__init__(report, run_id)
        self.report = report
        self.run_id = run_id
        """The run that was stopped."""

    def __str__(self) -> str:
        """Say which rule stopped the run, on what evidence, after how much."""
        trip = self.report.trip
        outer = self.report.stopped_with
        why = "its rules" if trip is None else trip.message
        why = why if outer is None else f"it is part of run {outer!r}, which was stopped"
        return (
            f"the loop guard stopped the run after {self.report.steps} steps "
            f"({self.report.model_calls} model calls, {self.report.tool_calls} tool calls): {why}"
        )


class RunInterrupted(BaseException):
    """What `RunAborted` says, to code that goes on after any `Exception`; `aborted` is that.

    Raised in its place with `abort_exception="base"`. Like `KeyboardInterrupt` it passes `except
    Exception`; a `guarded_run()` block makes a `RunAborted` of it.
    """

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        super().__init__(report, run_id)
        self.aborted = RunAborted(report, run_id)
        """The ordinary exception that stands for the same stop."""

    def __str__(self) -> str:
        """Say what `RunAborted` says."""
        return str(self.aborted)


Refusal: TypeAlias = "type[RunAborted | RunInterrupted]"
"""What a call is refused with."""

Refused: TypeAlias = "RunAborted | RunInterrupted"
"""Such an exception."""

REFUSALS: Mapping[AbortException, Refusal] = {"ordinary": RunAborted, "base": RunInterrupted}
"""What calls are refused with, as options name it."""


def _never(_: BaseException) -> bool:
    return False


def abort_of(exception: BaseException | None) -> RunAborted | None:
    """Return the `RunAborted` that an exception is, wraps or groups; `None` if there is none.

    Looks through `__cause__`, `__context__` and exception groups; for a `RunInterrupted` it returns
    the `RunAborted` that this stands for.
    """
    for part in parts_of(exception):
        if isinstance(part, RunAborted):
            return part
        if isinstance(part, RunInterrupted):
            return part.aborted
    return None


def parts_of(
    exception: BaseException | None, fails_by_itself: Callable[[BaseException], bool] = _never
) -> Iterator[BaseException]:
    """Yield an exception, and those that it wraps or groups.

    What was being handled when one came that `fails_by_itself` is none of its parts.
    """
    waiting = [exception]
    met: set[int] = set()
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in met:
            continue
        met.add(id(found))
        yield found
        grouped: object = getattr(found, "exceptions", None)  # a group; no type before 3.11
        waiting += [None if fails_by_itself(found) else found.__context__, found.__cause__]
        if isinstance(grouped, tuple):
            members = cast("tuple[object, ...]", grouped)
            waiting += [member for member in members if isinstance(member, BaseException)]
