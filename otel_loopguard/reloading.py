"""A policy file that has changed is read anew, and runs that begin from then on go by it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from otel_loopguard.aside import Aside
from otel_loopguard.environment import Configuration
from otel_loopguard.forks import renew_in_children
from otel_loopguard.options.variables import given
from otel_loopguard.policy import Mode
from otel_loopguard.policy_file import Found, State, found_in, is_at_rest, state_of
from otel_loopguard.run_keeper import RunKeeper
from otel_loopguard.telemetry import Telemetry

PAUSE_S = 1.0
"""Seconds between two looks at the file, at least."""

_TAKEN = "the policy file has changed: runs that begin from now on go by what %s says"
_KEPT = "the policy stays as it was, for its file cannot be followed:\n%s"
_RESTART = "%s: mode: %r counts when the process is started anew; until then it is %r"

_logger = logging.getLogger(__name__)


class Reloading:
    """Looks whether a policy file has changed, whenever something happens, and reads it anew.

    A file that cannot be followed changes nothing, and is told of once, until it changes again.
    There is no thread: whoever finds that it is time looks, and nobody waits for that.

    Args:
        said: what the file, if there is one, and the variables said when the guard was made.
        mode_of: the guard's mode by what they say; it stays as it is.
        runs: those that go by the file.
        telemetry: told of each change.
        aside: what is logged meanwhile is no work of an agent.
        fault: told of what went wrong in here.

    """

    def __init__(
        self,
        said: Configuration,
        mode_of: Callable[[Mode | None], Mode],
        runs: RunKeeper,
        telemetry: Telemetry,
        aside: Aside,
        fault: Callable[[Exception], object],
    ) -> None:
        self._path = said.path or ""
        # The process may change its directory.
        self._place = self._path and os.path.abspath(self._path)  # noqa: PTH100 -- links stay
        self._is_on = os.path.isfile(self._place)  # noqa: PTH113 -- no path, no file
        """There is a file; what is none, such as a pipe, can be read once."""
        self._variables = given(os.environ)
        self._mode_of, self._mode = mode_of, mode_of(said.mode)
        self._runs, self._telemetry = runs, telemetry
        self._aside, self._fault = aside, fault
        self._seen: State | None = None
        """The state of the file at the last look."""
        self._read: State | None = None
        """That in which it was read."""
        self._text = said.text
        """What stood in it then; `None` if it could not be read."""
        self._due_s = 0.0
        """When it is time to look, in seconds of the monotonic clock."""
        self._lock = threading.Lock()
        renew_in_children(self, "_lock", threading.Lock)
        if self._is_on:
            telemetry.announce_reloads()

    def look(self) -> None:
        """Look at the file, if it is time. Never raises, and never waits for another thread."""
        if not self._is_on:
            return
        now_s, lock = time.monotonic(), self._lock
        if now_s < self._due_s or not lock.acquire(blocking=False):
            return
        try:
            if now_s >= self._due_s:  # else another thread has looked just now
                self._due_s = now_s + PAUSE_S
                with self._aside:
                    self._look()
        except Exception as error:  # noqa: BLE001 -- the span at hand has no part in it
            self._fault(error)
        finally:
            lock.release()

    def _look(self) -> None:
        state = state_of(self._place)
        seen, self._seen = self._seen, state
        if state == self._read or not (state == seen or is_at_rest(state)):
            return
        text = self._text
        try:
            found = found_in(self._place, self._path, self._variables, state=state, before=text)
            if found is not None:
                text = found.text
                self._take(found)
        finally:  # at last: a child that is forked meanwhile has heard of nothing, and reads it
            self._read, self._text = state, text

    def _take(self, found: Found) -> None:
        said = found.said
        if said is None:
            self._telemetry.reloaded(None)
            _logger.warning(_KEPT, "\n".join(found.mistakes))
            return
        self._runs.go_by(said.policy)
        self._telemetry.reloaded(said.policy)
        _logger.info(_TAKEN, self._path)
        mode = self._mode_of(said.mode)
        if mode != self._mode:
            _logger.warning(_RESTART, self._path, mode, self._mode)
        for warning in said.policy.warnings:
            _logger.warning("policy: %s", warning)
