"""Fitted weights of `stagnation`: what they change, and the policy file that sets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from otel_loopguard.backtest.fitting import CurvePoint
from otel_loopguard.detectors._stagnation_classes import WEIGHTS

ENOUGH = 30
"""Loops from which fitted weights deserve some trust."""
SHOWN = (8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0)
"""Those of them that are shown to people."""
HEADING = "# Weights of stagnation fitted by `otel-loopguard backtest --fit`"
"""How a file of fitted weights begins."""

FitOn: TypeAlias = Literal["labels", "failed"]
"""Which runs are loops: those labelled so, or failed runs without a label as well."""


class FittedClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of tool steps: its weight before and after, and how many steps speak for that."""

    before: float
    after: float
    in_loops: int
    in_healthy: int


class FitReport(msgspec.Struct, frozen=True, kw_only=True):
    """Fitted weights, and what they change."""

    policy: str
    """The policy under which the runs were read, and whose weights were there before."""
    fit_on: FitOn
    loops: int
    healthy: int
    """Runs labelled `no`, and successful ones without a label."""
    left_out: int
    """Runs of which it is not known what they are."""
    enough: bool
    """There are at least 30 loops."""
    abort: float | None
    """The score at which the policy aborts."""
    classes: Mapping[str, FittedClass]
    before: tuple[CurvePoint, ...]
    """What aborting at each score would have done with the weights of before."""
    after: tuple[CurvePoint, ...]
    """The same with fitted weights, each run judged by weights that were fitted without it."""


def cautions(fit: FitReport) -> Iterator[str]:
    """Say why the weights deserve less trust than they might."""
    if not fit.enough:
        yield (
            f"There are {fit.loops:,} loops, and under {ENOUGH} are too few to trust fitted "
            "weights: most of what they are is still the weights of before."
        )
    if fit.fit_on == "failed":
        yield (
            "Failed runs were taken for loops. Most runs that fail do not go in circles, so this "
            "is rough: label some."
        )


def shown_points(fit: FitReport) -> list[tuple[CurvePoint, CurvePoint]]:
    """Return the points of before and after that are shown to people."""
    both = zip(fit.before, fit.after, strict=True)
    return [pair for pair in both if pair[0].threshold in (*SHOWN, fit.abort)]


def policy_text(fit: FitReport) -> str:
    """Return the text of a policy file with the weights."""
    return "\n".join(_lines(fit)) + "\n"


def _lines(fit: FitReport) -> Iterator[str]:
    yield f"{HEADING} to {fit.loops:,} loops and {fit.healthy:,} healthy runs."
    yield from (f"# {caution}" for caution in cautions(fit))
    yield "# What aborting at a score would have done, with the weights of before and with fitted"
    yield "# ones; of the latter, each run was judged by some that were fitted without it."
    yield f"# {'score':>6}  {'false aborts':>16}  {'loops caught':>16}"
    for before, after in shown_points(fit):
        wrong = _change(before.false_aborts.count, after.false_aborts.count, fit.healthy)
        right = _change(before.caught.count, after.caught.count, fit.loops)
        mark = "  <- where the policy aborts" if before.threshold == fit.abort else ""
        yield f"# {before.threshold:>6g}  {wrong:>16}  {right:>16}{mark}"
    yield from ("", "[rules.stagnation.weights]")
    for name, found in fit.classes.items():
        if not found.in_loops + found.in_healthy and found.after == WEIGHTS[name]:
            continue  # as built in
        steps = f"{found.in_loops:,} steps in loops, {found.in_healthy:,} in healthy runs"
        yield f"{name} = {found.after:g}  # {found.before:g} before; {steps}"


def _change(before: int, after: int, of: int) -> str:
    return f"{before:,} -> {after:,} of {of:,}"
