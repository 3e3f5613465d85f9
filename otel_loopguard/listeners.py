"""Who hears what the guards of this process say: tests, that watch guards which others made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from otel_loopguard.decisions import Decision, RunReport
from otel_loopguard.steps import Step


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What one guard said of one run, at one moment."""

    guard: object
    """The engine that said it: one for each run."""
    run_id: str = ""
    """Empty where a loop asks its engine itself."""
    agent: str = ""
    enforces: bool | None = None
    """Whether what is refused is stopped; `None` where that is up to the loop that asks."""
    step: Step | None = None
    """What it was told of, with its content; `None` for a report, and where nothing happened."""
    decision: Decision | None = None
    over: bool = False
    """Whether a loop has told what came out of the step; else it asks whether it may happen."""
    report: RunReport | None = None
    """What became of the run: it has ended."""


Listener: TypeAlias = Callable[[Said], object]
"""Told of what is said, on the thread that asked and outside every lock. What it raises is
swallowed."""

LISTENERS: list[Listener] = []
"""Those who listen now. Whoever says something looks here first: mostly there is nobody."""


def tell(said: Said) -> None:
    """Let all of them hear it."""
    for listener in tuple(LISTENERS):
        with suppress(Exception):  # a foreign callback may do anything
            listener(said)
