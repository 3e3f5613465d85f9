"""The timer: asks runs when a limit on time is reached, while nothing happens in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf

from otel_loopguard.forks import renew_in_children
from otel_loopguard.runs import Run
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

GRAIN_S = 0.01
"""Seconds between two looks at the runs, at least."""

_SHARE = 20
"""A look that took long is followed by a rest so many times as long."""


class Timer:
    """A thread that sleeps until the earliest limit on time among the runs that it watches.

    It watches the runs that have such a limit, once something has happened in them in this process:
    a forked child leaves those of its parent alone. The thread starts with the first of them, and
    never keeps a process alive.

    Args:
        tracker: whose runs they are.
        act: called with what a run is told, in a thread of its own: it may take its time.
        fault: told of what went wrong in here.

    """

    def __init__(
        self,
        tracker: RunTracker,
        act: Callable[[Verdict], object],
        fault: Callable[[Exception], object],
    ) -> None:
        self._tracker = tracker
        self._act = act
        self._fault = fault
        self._clock = tracker.runs.run_clock
        # One that is not the process's own moves without a word, and not by waiting.
        is_own = self._clock is time.monotonic
        self._longest_s = threading.TIMEOUT_MAX if is_own else GRAIN_S
        self._watch = _Watch()
        renew_in_children(self, "_watch", _Watch)

    def expect(self, run: Run, *, sooner: bool) -> None:
        """Hear that something has happened in a run: from here on it is watched.

        What happens in a run that is watched puts its limits off. Say `sooner` where it may have
        brought one that is reached before: an agent has started.
        """
        watch = self._watch
        if not run.is_timed or (run in watch.runs and not sooner):
            return
        with self._tracker.runs.lock:
            due_s = run.due_s()
            if due_s is None:
                return
            watch.runs[run] = None
        if due_s < watch.until_s:
            with watch.condition:
                watch.until_s = min(due_s, watch.until_s)
                if watch.thread is None and not watch.is_over:
                    watch.thread = threading.Thread(
                        target=self._keep_watch, args=(watch,), name="loopguard-timer", daemon=True
                    )
                    watch.thread.start()
                watch.condition.notify()

    def forget(self, run: Run) -> None:
        """Hear that a run has ended."""
        self._watch.runs.pop(run, None)

    def stop(self) -> None:
        """End the thread, soon."""
        watch = self._watch
        with watch.condition:
            watch.is_over = True
            watch.condition.notify()

    def _keep_watch(self, watch: _Watch) -> None:
        rested_s = 0.0
        while True:
            now_s = self._now_s()
            with watch.condition:
                if watch.is_over:
                    return
                if not watch.runs:  # whatever the clock says, there is nothing to look at
                    watch.until_s = inf  # has the next run say so, unless it came just before
                    if not watch.runs:
                        watch.condition.wait()
                        continue
                    watch.until_s = now_s
                pause_s = max(watch.until_s - now_s, rested_s - time.monotonic())
                if pause_s > 0:
                    watch.condition.wait(min(pause_s, self._longest_s))
                    continue
                watch.until_s = inf  # whatever is due from here on is heard of, or found below
            began_s = time.monotonic()
            for run in tuple(watch.runs):
                self._look_at(run, watch)
            ended_s = time.monotonic()
            rested_s = ended_s + max(GRAIN_S, _SHARE * (ended_s - began_s))

    def _now_s(self) -> float:
        """Read the clock; where that fails all runs are due, and a look takes each off the list."""
        try:
            return self._clock()
        except Exception as error:  # noqa: BLE001 -- a foreign clock must not end the thread
            self._fault(error)
            return inf

    def _look_at(self, run: Run, watch: _Watch) -> None:
        verdict = None
        try:
            with self._tracker.runs.lock:
                due_s = run.due_s()
                if due_s is not None and due_s <= self._clock():
                    verdict = self._tracker.tick(run)
                    due_s = run.due_s()
                if due_s is None:
                    watch.runs.pop(run, None)
        except Exception as error:  # noqa: BLE001 -- one run must not end the watch over the others
            watch.runs.pop(run, None)
            self._fault(error)
            return
        if due_s is not None:
            with watch.condition:
                watch.until_s = min(due_s, watch.until_s)
        if verdict is not None:
            self._tell(verdict)

    def _tell(self, verdict: Verdict) -> None:
        act = self._act
        try:
            threading.Thread(
                target=act, args=(verdict,), name="loopguard-late", daemon=True
            ).start()
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            act(verdict)


class _Watch:
    """The state of one timer in one process."""

    __slots__ = ("condition", "is_over", "runs", "thread", "until_s")

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.runs: dict[Run, None] = {}
        self.until_s = inf
        """When the thread looks next, in seconds of the runs' clock."""
        self.thread: threading.Thread | None = None
        self.is_over = False
