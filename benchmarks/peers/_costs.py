"""Measures what a guard costs a step, early and late in a run, and what a run keeps.

All guards run in this process, in short rounds that take turns, so that a busy machine slows them
alike, and only the time that this process ran is counted. A guard that needs more than its share
of seconds to reach a step is measured where it has got to.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from benchmarks.peers._adapter import Call, Contender, Verdict
from benchmarks.peers._stream import healthy_calls

ROUND_S = 0.02
"""What a round of a slow guard may take: it plays fewer steps, at least one."""
STEPS = 50
"""Steps in a round."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a step costs from some step of the run on."""

    after: int
    """Steps before the first round."""
    microseconds: float
    """Median of the rounds."""
    ratio: float
    """Median, over the rounds, of the ratio to the baseline in the same round."""


class Playing:
    """A guard in the middle of a long run."""

    def __init__(self, contender: Contender, calls: Sequence[Call]) -> None:
        self.contender = contender
        self.done = 0
        self.stops = 0
        self.failure = ""
        self._calls = calls
        self._judge: Callable[[Any], Verdict] | None = None

    def play(self, count: int) -> float:
        """Judge the next calls; return the seconds that one took."""
        calls = self._calls[self.done : self.done + count]
        prepared = [self.contender.prepare(call) for call in calls]
        if self._judge is None:
            self._judge = self.contender.start()
        judge = self._judge
        began = time.process_time()
        verdicts = [judge(each) for each in prepared]
        took = time.process_time() - began
        self.done += len(prepared)
        self.stops += verdicts.count("stop")
        return took / max(1, len(prepared))

    def reach(self, target: int, limit_s: float) -> None:
        """Go on to a step, or as far as one gets in some seconds."""
        deadline = time.process_time() + limit_s
        while self.done < target and time.process_time() < deadline:
            self.play(min(STEPS, target - self.done, 1 + self.done // 2))


def measure(
    playing: Sequence[Playing], baseline: Playing, target: int, *, rounds: int, limit_s: float
) -> dict[str, Cost]:
    """Return each guard's cost after `target` steps, by name; one that raises has none."""
    for each in playing:
        _guarded(each, partial(each.reach, target, limit_s))
    started = {each.contender.name: each.done for each in playing}
    sizes = {each.contender.name: _round_size(each) for each in playing}
    times: dict[str, list[float]] = {each.contender.name: [] for each in playing}
    for turn in range(rounds):
        order = playing if turn % 2 == 0 else playing[::-1]
        for each in order:
            name = each.contender.name
            _guarded(each, partial(_play_round, each, sizes[name], times[name]))
    base = times[baseline.contender.name]
    return {
        name: Cost(
            after=started[name],
            microseconds=statistics.median(costs) * 1e6,
            ratio=statistics.median(cost / least for cost, least in zip(costs, base, strict=True)),
        )
        for name, costs in times.items()
        if len(costs) == rounds
    }


def _play_round(each: Playing, size: int, times: list[float]) -> None:
    times.append(each.play(size))


def _round_size(each: Playing) -> int:
    took: list[float] = []
    _guarded(each, partial(_play_round, each, 2, took))
    return max(1, min(STEPS, int(ROUND_S / (max(took, default=ROUND_S) or 1e-9))))


def _guarded(each: Playing, action: Callable[[], object]) -> None:
    """Run an action unless the guard has failed; note what it raises."""
    if each.failure:
        return
    try:
        action()
    except Exception as error:  # noqa: BLE001 -- a foreign guard may raise anything
        each.failure = repr(error)


def kept_by_a_run(contender: Contender, steps: int, limit_s: float) -> tuple[int, float]:
    """Return the steps played and the KiB that the run then keeps, by tracemalloc.

    The calls are made on the way and forgotten: what is left of them is what the guard holds on to.
    Raises what the guard raises.
    """
    _play_some(contender, 50, limit_s)  # what is made once a process is no part of a run
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        done, judge = _play_some(contender, steps, limit_s)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
        del judge
    finally:
        tracemalloc.stop()
    return done, kept / 1024


def _play_some(contender: Contender, steps: int, limit_s: float) -> tuple[int, object]:
    judge = contender.start()
    deadline = time.process_time() + limit_s
    done = 0
    for call in itertools.islice(healthy_calls(seed=2), steps):
        judge(contender.prepare(call))
        done += 1
        if time.process_time() > deadline:
            break
    return done, judge
