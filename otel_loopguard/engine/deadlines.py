"""When limits on time are reached if nothing happens."""

from __future__ import annotations

from math import inf

from otel_loopguard.engine.invocations import Invocations
from otel_loopguard.engine.run_totals import RunTotals
from otel_loopguard.settings import Settings


def due_s(
    settings: Settings,
    totals: RunTotals,
    invocations: Invocations,
    earlier_s: float,
    silent_from_s: float,
) -> float | None:
    """Return the first such moment of a run, in seconds of its time line; `None` for never.

    Args:
        settings: the limits.
        totals: say when the run began.
        invocations: the agents that are at work, each with limits of its own.
        earlier_s: the seconds that earlier runs of the conversation took.
        silent_from_s: since when nothing has happened; infinite while silence says nothing.

    """
    if totals.latest is None:
        return None
    limits, began_s = settings.limits, totals.started_s - earlier_s
    moments = [began_s + moment for moment in invocations.due_s(silent_from_s - began_s)]
    if limits.max_duration_s is not None and settings.scope != "agent":
        moments.append(began_s + limits.max_duration_s)
    if limits.max_idle_s is not None:
        moments.append(silent_from_s + limits.max_idle_s)
    return min((moment for moment in moments if moment != inf), default=None)
