"""What every integration is made of: wrappers in a framework, and questions to the guards.

As long as any guard is installed the wrappers are there; what they ask is answered by the first
guard that has something to say. No question raises anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, TypeAlias

from otel_loopguard.abort.aborted import Refused, RunAborted
from otel_loopguard.abort.entry_points import run_block
from otel_loopguard.abort.patches import Entry, Patches
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.checkpoints import Checkpoints
from otel_loopguard.steps import Step

if TYPE_CHECKING:
    from typing_extensions import Self

    from otel_loopguard.checks import ToolCheck
    from otel_loopguard.decisions import RunReport
    from otel_loopguard.processor import LoopGuardSpanProcessor


Places: TypeAlias = Mapping[str, Callable[[ModuleType], Iterable[Entry]]]
"""What is wrapped, by the module that has the classes once it is imported."""


class Integration:
    """One framework's way to the guards.

    Args:
        title: what the framework is called where something goes wrong.
        places: what is wrapped while any guard is installed; nothing for frameworks whose own hooks
            ask.
        scopes: the instrumentation scopes of spans within which the framework asks about the calls
            that they stand for. Those are refused when they are asked about, for what the start of
            a span raises is neither a tool's result nor an error of the framework's own.

    """

    def __init__(
        self,
        title: str,
        places: Places | None = None,
        *,
        scopes: frozenset[str] = frozenset(),
    ) -> None:
        self._scopes = scopes
        self._patches: Patches[Entry, Checkpoints] = Patches(
            {} if places is None else places,
            lambda entry: entry.called,
            f"runs of {title} are stopped by the model gate alone: %s is not what was expected",
        )

    def install(self, guard: LoopGuardSpanProcessor) -> None:
        """Let the framework ask this guard, until it is uninstalled or shut down."""
        checkpoints = guard.checkpoints
        self._patches.keep(checkpoints)
        checkpoints.leave_calls_here(self._scopes)
        checkpoints.when_closed(self, partial(self._patches.leave, checkpoints))

    def uninstall(self, guard: LoopGuardSpanProcessor) -> None:
        """Let it ask this guard no more; with the last one gone, put everything back as it was."""
        self._patches.leave(guard.checkpoints)
        guard.checkpoints.when_closed(self, None)
        guard.checkpoints.leave_calls_to_spans(self._scopes)

    @property
    def is_active(self) -> bool:
        """Whether there is a guard to ask."""
        return bool(self._patches.keepers)

    def refusal(self) -> Refused | None:
        """Return what a model call of the calling code is refused with; `None` if it may be made.

        To be asked right before the call, in its context.
        """
        answers = (each.model_call() for each in self._patches.keepers)
        return next((refused for refused in answers if refused is not None), None)

    def ask(self, error: Callable[[RunReport, str], RunAborted] = RunAborted) -> None:
        """Raise what a model call of the calling code is refused with, if it is.

        `error` makes a `RunAborted` that is an error of the framework's own too; who has asked for
        `RunInterrupted` gets that.
        """
        refusal = self.refusal()
        if isinstance(refusal, RunAborted):
            raise error(refusal.report, refusal.run_id)
        if refusal is not None:
            raise refusal

    def calling(
        self, name: str, arguments: object = UNKNOWN, call_id: str | None = None
    ) -> ToolCalling:
        """Return a block for a tool call that the calling code is about to make.

        Args:
            name: the tool's.
            arguments: what it is called with, as objects or as JSON text.
            call_id: what the model calls its request for it.

        """
        step = Step(kind="tool", name=name, arguments=arguments, call_id=call_id or None)
        return ToolCalling(step, self, self._patches.keepers)

    def asking(self) -> ToolCalling:
        """Return such a block for a model call that nothing in this process shows but this.

        For frameworks whose models are asked by another process. Others say `refusal()`: their
        model calls have spans, or pass the gate.
        """
        return ToolCalling(Step(kind="llm"), self, self._patches.keepers)

    def hint(self) -> str | None:
        """Return a hint for the model that is to go along with its next request; mostly `None`."""
        hints = (each.hint() for each in self._patches.keepers)
        return next((hint for hint in hints if hint is not None), None)

    def run(self) -> AbstractContextManager[object]:
        """Return a block that is one run, unless the calling code is in one already."""
        return run_block()


class ToolCalling:
    """A block in which a call is made, of a tool as a rule, unless there is a `refusal`.

    What it has come to is to be its `result`; an exception that leaves the block is its error.
    """

    __slots__ = ("_checks", "_keepers", "_step", "_teller", "refusal", "result")

    def __init__(self, step: Step, teller: object, keepers: tuple[Checkpoints, ...]) -> None:
        self._step = step
        self._teller = teller
        self._keepers = keepers
        self._checks: list[tuple[Checkpoints, ToolCheck]] = []
        self.refusal: Refused | None = None
        """What the call is refused with; `None` if it may be made."""
        self.result: object = UNKNOWN
        """What the tool has answered, without what is another each time, such as the call's id."""

    def begin(self) -> Self:
        """Ask whether the call may be made."""
        for each in self._keepers:
            check = each.tool_call(self._step, self._teller)
            if check is not None:
                self._checks.append((each, check))
                self.refusal = self.refusal or each.refused(check)
            if self.refusal is not None:
                break
        return self

    def end(self, result: object = UNKNOWN, error: BaseException | str | None = None) -> None:
        """Tell what the call has come to; one that was cancelled has come to nothing."""
        given = error if isinstance(error, str) else None
        said = _said(error) if isinstance(error, Exception) else given
        while self._checks:
            keeper, check = self._checks.pop()
            keeper.came_back(check, result, said)

    def __enter__(self) -> Self:
        """Ask whether the call may be made."""
        return self.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Tell what the call has come to."""
        self.end(self.result, exception)


def reason(refusal: Refused) -> str:
    """Return what a model is told in the place of a call's result; a `RunInterrupted` is raised."""
    if not isinstance(refusal, RunAborted):
        raise refusal
    return str(refusal)


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__qualname__}: {error}"
    except Exception:  # noqa: BLE001 -- a foreign exception may do anything
        return type(error).__qualname__
