"""What the engine costs: beside the least a loop detector could do, and over a long run.

The baseline is what one writes in ten minutes: `json.dumps(sort_keys=True)`, SHA-256, three equal
calls in a row. All run in this process, in short rounds that take turns, so that a busy machine
slows them alike, and only the time that this process ran is counted.
"""

from __future__ import annotations

import hashlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from otel_loopguard import LoopGuard, Policy, Step

ROUNDS = 60
STEPS = 500
"""Steps in a round."""
ROUND = 100
"""Steps in a round of the long run, which go on in it."""
CHANCE = random.Random(7)  # noqa: S311 -- the same text every time
TEXT = " ".join(
    "".join(CHANCE.choices("abcdefghijklmnopqrstuvwxyz", k=CHANCE.randint(2, 9)))
    for _ in range(30_000)
)

LIMITS = Policy(
    max_steps=10**9,
    max_llm_calls=10**9,
    max_tool_calls=10**9,
    max_calls_per_tool={"search": 10**9},
    max_duration_s=10**9,
    max_repeated_calls=10,
    max_same_tool_calls=10,
    loop_pattern_window=12,
)
"""Every limit there is, over the default rules."""


class Naive:
    """Three equal calls in a row."""

    def __init__(self) -> None:
        self._last = ""
        self._in_a_row = 0

    def check(self, name: str, arguments: object) -> bool:
        text = f"{name} {json.dumps(arguments, sort_keys=True)}"
        call = hashlib.sha256(text.encode()).hexdigest()
        self._in_a_row = self._in_a_row + 1 if call == self._last else 1
        self._last = call
        return self._in_a_row < 3


def prose(place: int, length: int) -> str:
    """Return a piece of a fixed text of chance words."""
    start = place % (len(TEXT) - length)
    return TEXT[start : start + length]


def stream(length: int, first: int = 0) -> list[Step]:
    """Return tool calls, arguments of some 300 characters, results of 500, none like another."""
    return [
        Step(
            kind="tool",
            name=("search", "fetch", "read_file", "run_query")[index % 4],
            arguments={
                "query": f"annual report of {prose(index * 31, 20)} {index} and its companies",
                "limit": 20,
                "offset": index,
                "filters": {"language": "en", "since": "2024-01-01", "domains": ["example.org"]},
                "fields": ["title", "summary", "published", "author"],
                "include_archived": False,
                "note": "the user wants figures in euros, rounded to whole thousands",
            },
            result=f"{index} rows: {prose(index * 7_919, 488)}",
        )
        for index in range(first, first + length)
    ]


def naive(steps: Sequence[Step]) -> None:
    check = Naive().check
    for step in steps:
        check(step.name, step.arguments)


def check(steps: Sequence[Step], policy: Policy) -> None:
    ask = LoopGuard(policy).check
    for step in steps:
        ask(step)


def check_and_record(steps: Sequence[Step], policy: Policy) -> None:
    guard = LoopGuard(policy)
    ask, record = guard.check, guard.record
    for step in steps:
        ask(step)
        record(step)


def seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def against_naive() -> None:
    steps = stream(STEPS)
    default = Policy()
    contenders: dict[str, Callable[[], None]] = {
        "naive": lambda: naive(steps),
        "check, default policy": lambda: check(steps, default),
        "check and record, default policy": lambda: check_and_record(steps, default),
        "check, all limits": lambda: check(steps, LIMITS),
        "check and record, all limits": lambda: check_and_record(steps, LIMITS),
    }
    rounds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            rounds[name].append(seconds(run) / STEPS * 1e6)
    length = statistics.mean(len(json.dumps(step.arguments)) for step in steps)
    print(
        f"cost per step, arguments of {length:.0f} characters, results of "
        f"{len(str(steps[0].result))} (medians of {ROUNDS} rounds)"
    )
    for name, costs in rounds.items():
        ratio = statistics.median(
            cost / base for cost, base in zip(costs, rounds["naive"], strict=True)
        )
        print(f"  {name:34} {statistics.median(costs):6.2f} us   {ratio:5.2f} x naive")


def over_time() -> None:
    """Print what a step costs late in a long run, beside early in another one, in turn.

    Each round plays the same new steps to both, so that neither the machine nor the steps differ.
    """
    print("cost per step by the length of the run, check and record, default policy")
    late = LoopGuard()
    done = refused = 0
    for length in (10_000, 100_000, 1_000_000):
        while done < length:
            count = min(10_000, length - done)
            refused += play(late, stream(count, done))
            done += count
        early = LoopGuard()
        refused += play(early, stream(1_000, 10**9))
        costs: list[tuple[float, float]] = []
        for turn in range(41):
            steps = stream(ROUND, done)
            done += len(steps)
            guards = (early, late) if turn % 2 else (late, early)
            took = {id(guard): seconds(lambda g=guard, s=steps: play(g, s)) for guard in guards}
            costs.append((took[id(early)] / ROUND * 1e6, took[id(late)] / ROUND * 1e6))
        early_us, late_us = (statistics.median(each) for each in zip(*costs, strict=True))
        ratio = statistics.median(after / before for before, after in costs)
        print(
            f"  after {length:>9,} steps {late_us:6.2f} us, after 1,000 {early_us:6.2f} us"
            f"   {ratio:5.3f} x"
        )
    print(f"  refused: {refused} steps")


def play(guard: LoopGuard, steps: Sequence[Step]) -> int:
    """Ask and tell; return the number of refusals."""
    ask, record = guard.check, guard.record
    refused = 0
    for step in steps:
        refused += not ask(step).allowed
        record(step)
    return refused


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}")
    against_naive()
    if "--quick" not in sys.argv:
        over_time()
