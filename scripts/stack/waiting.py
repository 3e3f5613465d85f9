"""Waiting for what becomes so within a time: nothing is waited for without an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PAUSE_S = 0.1


class TooLateError(RuntimeError):
    """What was waited for has not come about; the message says what and how long."""


def eventually(
    what: str,
    ask: Callable[[], T | None],
    *,
    within_s: float,
    unless: Callable[[], str | None] = lambda: None,
) -> T:
    """The first answer that holds; `unless` says why it is of no use to wait any longer.

    An `OSError` is no answer yet.

    Raises:
        TooLateError: there was none in time, or there is a reason why there will be none.

    """
    ends = time.monotonic() + within_s
    while True:
        answer: T | OSError | None
        try:
            answer = ask()
        except OSError as error:  # on a busy machine one of many questions may have no answer
            answer = error
        if answer and not isinstance(answer, OSError):
            return answer
        reason = unless()
        if reason is not None:
            raise TooLateError(f"{what}: {reason}")
        if time.monotonic() > ends:
            raise TooLateError(f"{what}: not within {within_s:g} s; the last answer was {answer!r}")
        time.sleep(PAUSE_S)
