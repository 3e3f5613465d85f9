"""The figures of a backtest as charts, each with its numbers as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from otel_loopguard.backtest import BacktestReport, CurvePoint, FitReport, PolicyReport
from otel_loopguard.cli.backtest_charts import Axis, Bar, Series, columns, curves, rows, ticks_to
from otel_loopguard.cli.tables import of

COLUMNS = 24
"""Columns of a histogram, about."""


def trade_off(report: BacktestReport) -> tuple[str, str, list[list[str]]] | None:
    """Return the curve of what was caught against false trips, its vertical axis, and its numbers.

    Each curve grows with the steps that a run is watched for; its last point is the whole policy.
    Without labels, what is caught are the runs not known to have succeeded. `None` if there is no
    successful run, or nothing else.
    """
    labelled = any(policy.total.recall.of for policy in report.policies)
    caught = "loops caught" if labelled else "other runs tripped"
    series: list[Series] = []
    numbers: list[list[str]] = []
    for policy in report.policies:
        total, good = _caught_of(policy, labelled=labelled), policy.total.succeeded
        if not total or not good:
            return None
        points, titles = [(0.0, 0.0)], [f"{policy.policy}: before the first step"]
        wrong = right = 0
        for step in policy.trip_steps:
            wrong += policy.false_trip_steps.get(step, 0)
            right += _caught_at(policy, step, labelled=labelled)
            point = wrong / good * 100, right / total * 100
            said = f"{right:,} of {total:,} {caught}, {wrong:,} of {good:,} false trips"
            if point != points[-1]:
                points.append(point)
                titles.append(f"{policy.policy}, watched for {of(step, 'step')}: {said}")
        series.append(Series(policy.policy, points, titles))
        numbers.append([policy.policy, f"{wrong:,} of {good:,}", f"{right:,} of {total:,}"])
    x = Axis("false trips, % of successful runs", max(p[0] for s in series for p in s.points))
    y = Axis(f"{caught}, %", 100)
    return curves(series, x, y, f"False trips against {caught}"), caught, numbers


def fit_curves(fit: FitReport) -> str:
    """Return the curves of loops caught against false aborts, before and after the fit.

    Each goes from the highest score to the lowest; the score at which the policy aborts is marked.
    """
    series = [_fit_series("before", fit.before, fit), _fit_series("after", fit.after, fit)]
    most = max(place[0] for one in series for place in one.points)
    x = Axis("false aborts, % of healthy runs", most)
    return curves(series, x, Axis("loops caught, %", 100), "False aborts against loops caught")


def _fit_series(name: str, points: Sequence[CurvePoint], fit: FitReport) -> Series:
    falling = points[::-1]
    marked = [place for place, point in enumerate(falling) if point.threshold == fit.abort]
    return Series(
        name,
        [
            ((point.false_aborts.share or 0.0) * 100, (point.caught.share or 0.0) * 100)
            for point in falling
        ],
        [
            f"{name}, at {point.threshold:g}: {point.caught.count:,} of {fit.loops:,} loops "
            f"caught, {point.false_aborts.count:,} of {fit.healthy:,} false aborts"
            for point in falling
        ],
        marked[0] if marked else -1,
        hollow=name == "before",
    )


def _caught_of(policy: PolicyReport, *, labelled: bool) -> int:
    total = policy.total
    return total.recall.of if labelled else total.runs - total.succeeded


def _caught_at(policy: PolicyReport, step: int, *, labelled: bool) -> int:
    if labelled:
        return policy.loop_trip_steps.get(step, 0)
    return policy.trip_steps[step] - policy.false_trip_steps.get(step, 0)


def step_histogram(policy: PolicyReport) -> tuple[str, list[list[str]]] | None:
    """Return at which steps runs tripped, and its numbers; `None` if none did."""
    if not policy.trip_steps:
        return None
    width = bin_width(max(policy.trip_steps))
    bars: list[Bar] = []
    for place in range((max(policy.trip_steps) - 1) // width + 1):
        first, last = place * width + 1, (place + 1) * width
        every = _within(policy.trip_steps, first, last)
        bad = _within(policy.false_trip_steps, first, last)
        steps = f"{first:,}" if width == 1 else f"{first:,}-{last:,}"
        title = f"step {steps}: {of(every, 'trip')}, {of(bad, 'false trip')}"
        bars.append(Bar(steps, bad, every - bad, title))
    chart = columns(
        bars,
        width,
        Axis("step of the trip", len(bars) * width, whole=True),
        Axis("trips", max(bar.bad + bar.other for bar in bars), whole=True),
        f"Steps of the trips, policy {policy.policy}",
    )
    numbers = [
        [bar.name, f"{bar.bad + bar.other:,.0f}", f"{bar.bad:,.0f}"]
        for bar in bars
        if bar.bad + bar.other
    ]
    return chart, numbers


def bin_width(most: int) -> int:
    """Return the round number of steps that a column covers so that some 24 reach to `most`."""
    if most <= COLUMNS:
        return 1
    return max(1, round(ticks_to(most / COLUMNS * 5)[1]))


def rule_bars(policy: PolicyReport) -> str | None:
    """Return how many runs each rule stopped first; `None` if none stopped any."""
    stopping = {rule: found for rule, found in policy.rules.items() if found.trips}
    if not stopping:
        return None
    bars = [
        Bar(
            rule,
            found.false_trips,
            found.trips - found.false_trips,
            f"{rule}: {of(found.trips, 'trip')}, {of(found.false_trips, 'false trip')}",
        )
        for rule, found in stopping.items()
    ]
    most = max(found.trips for found in stopping.values())
    return rows(bars, Axis("trips", most), f"Trips by rule, policy {policy.policy}")


def _within(counts: Mapping[int, int], first: int, last: int) -> int:
    return sum(count for step, count in counts.items() if first <= step <= last)


def series_names(report: BacktestReport) -> Sequence[str]:
    """Return the names of the curves, in the order of their colours."""
    return [policy.policy for policy in report.policies]
