"""How code finds the run that it belongs to: what its context holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from otel_loopguard.forks import renew_in_children

if TYPE_CHECKING:
    from otel_loopguard.decisions import RunReport
    from otel_loopguard.runs import Run


class Cancellable(Protocol):
    """A task that can be asked to end, from any thread."""

    @property
    def is_current(self) -> bool:
        """Whether the calling code runs in it."""
        ...

    def cancel(self, wanted: Callable[[], bool], delivered: Callable[[], object]) -> bool:
        """Ask it to end, if that is `wanted` when it can hear; say whether it can be asked."""
        ...


class RunCloser(Protocol):
    """Ends runs that no span ends."""

    def close(self, run: Run) -> RunReport:
        """End a run and return what became of it."""
        ...


class Slot:
    """What the context variable holds. Contexts are copied, the slot in them is shared.

    Emptying it when a run ends therefore reaches every copy of the context.
    """

    __slots__ = ("explicit_id", "limits", "outer", "outside_id", "runs", "span_id", "task")

    lock = threading.RLock()
    """Held while a run is put into the slot of a `guarded_run`, and while that is left."""

    def __init__(
        self,
        explicit_id: str | None = None,
        limits: Mapping[str, object] | None = None,
        outer: Slot | None = None,
    ) -> None:
        self.explicit_id = explicit_id
        """The id of the `guarded_run` that made the slot; `None` once that is over."""
        self.limits: Mapping[str, object] = {} if limits is None else limits
        """The limits of that run alone."""
        self.outer = None if outer is None else outer.going_on()
        """The slot of the `guarded_run` around that one."""
        self.span_id = 0
        """The span that was current when the `guarded_run` began; 0 if there was none."""
        self.outside_id = 0
        """The same of a run that nobody has asked for: its own spans are below that one."""
        self.runs: dict[RunCloser, Run] = {}
        """The run in each tracker that has one here."""
        self.task: Cancellable | None = None
        """The task in which the run began."""

    def going_on(self) -> Slot | None:
        """Return the slot of the innermost `guarded_run` here that is not over, this one first.

        Those that are over are let go of: one may be made inside the other for ever.
        """
        slot = self
        while (outer := slot.outer) is not None:
            if outer.explicit_id is None:
                slot.outer = outer.outer
            else:
                slot = outer
        return self if self.explicit_id is not None else self.outer


renew_in_children(Slot, "lock")  # one for all: a fork finds every slot in some context

CURRENT: ContextVar[Slot | None] = ContextVar("loopguard_run", default=None)
"""The run that the code running in this context belongs to."""
