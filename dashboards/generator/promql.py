"""The PromQL that the boards are made of: which series, how much they grew, quantiles.

A series that is born at 1 has no increase for Prometheus, so the first failed abort of a process
would be invisible. `grew` adds what a series was born with. It takes a series for newborn that was
not there in the hour before: a scrape that failed, or a short gap, must not count everything anew.
"""

from __future__ import annotations

RANGE = "$__range"
"""What the time picker shows: for totals."""
STEP = "$__rate_interval"
"""At least four scrapes, and one step of the panel: for curves."""


def of(metric: str, *matchers: str, agent: bool = True, rule: bool = False) -> str:
    """The series of a metric that the variables above the board have chosen."""
    chosen = ['job=~"$job"']
    if agent:
        chosen.append('gen_ai_agent_name=~"$agent"')
    if rule:
        chosen.append('loopguard_rule=~"$rule"')
    return f"{metric}{{{', '.join([*chosen, *matchers])}}}"


def grew(series: str, window: str = RANGE) -> str:
    """How much each counter grew in a window, its first increment included."""
    born = f"min_over_time({series}[{window}]) unless last_over_time({series}[1h] offset {window})"
    increase = f"increase({series}[{window}])"
    return f"({increase} + ({born})) or {increase}"


def total(expression: str, *by: str) -> str:
    """The sum, by labels if any; what tells processes and instrumentation scopes apart is left."""
    return f"sum{_by(by)} ({expression})"


def counted(series: str, *by: str, window: str = RANGE) -> str:
    """How often something happened, as a whole number: Prometheus guesses at a window's edges.

    By labels, what has not happened is left out, or a legend would be full of it.
    """
    rounded = f"round({total(grew(series, window), *by)})"
    return some(rounded) if by else rounded


def most(expression: str, *by: str) -> str:
    return f"max{_by(by)} ({expression})"


def or_zero(expression: str) -> str:
    """For a tile: nothing so far is 0, and not `No data`."""
    return f"{expression} or vector(0)"


def some(expression: str) -> str:
    """For a table: no rows of zeros."""
    return f"{expression} > 0"


def quantile(share: float, buckets: str, *by: str, window: str = STEP) -> str:
    """A quantile of a histogram, which sees the first observation of a process as well."""
    return f"histogram_quantile({share}, {total(grew(buckets, window), *by, 'le')})"


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""
