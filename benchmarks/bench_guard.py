"""What the engine costs: beside the least a loop detector could do, over time, and in memory.

The baseline is what one writes in ten minutes: `json.dumps(sort_keys=True)`, SHA-256, three equal
calls in a row. All run in this process, in short rounds that take turns, so that a busy machine
slows them alike, and only the time that this process ran is counted.
"""

from __future__ import annotations

import gc
import hashlib
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from otel_loopguard import LoopGuard, Policy, Step

ROUNDS = 60
STEPS = 500
"""Steps in a round."""

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


def stream(length: int) -> list[Step]:
    """Return tool calls with arguments of some 300 characters, none like another."""
    return [
        Step(
            kind="tool",
            name=("search", "fetch", "read_file", "run_query")[index % 4],
            arguments={
                "query": f"annual report of company {index} and its subsidiaries, audited",
                "limit": 20,
                "offset": index,
                "filters": {"language": "en", "since": "2024-01-01", "domains": ["example.org"]},
                "fields": ["title", "summary", "published", "author"],
                "include_archived": False,
                "note": "the user wants figures in euros, rounded to whole thousands",
            },
            result=f"{index} rows",
        )
        for index in range(length)
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
    print(f"cost per step, arguments of {length:.0f} characters (medians of {ROUNDS} rounds)")
    for name, costs in rounds.items():
        ratio = statistics.median(
            cost / base for cost, base in zip(costs, rounds["naive"], strict=True)
        )
        print(f"  {name:34} {statistics.median(costs):6.2f} us   {ratio:5.2f} x naive")


def endless(steps: Sequence[Step]) -> Iterator[Step]:
    while True:
        yield from steps


def over_time() -> None:
    """Print what a step costs early and late in a long run."""
    print("cost per step by the length of the run, check and record, all limits")
    guard = LoopGuard(LIMITS)
    calls = endless(stream(1_000))
    done = 0

    def play(count: int) -> None:
        for step, _ in zip(calls, range(count), strict=False):
            guard.check(step)
            guard.record(step)

    for length in (1_000, 10_000, 100_000, 1_000_000):
        play(length - done)
        costs = [seconds(lambda: play(100)) * 1e4 for _ in range(50)]
        done = length + 5_000
        print(f"  after {length:>9,} steps {statistics.median(costs):6.2f} us")


def memory() -> None:
    """Print what a run keeps, after 20,000 steps none of which is like another."""
    print("memory of a run with the default policy after 20,000 steps")
    for name, records in (("check", False), ("check and record", True)):
        for agents in (1, 8):
            gc.collect()
            tracemalloc.start()
            guard = LoopGuard()
            before = tracemalloc.get_traced_memory()[0]
            for index in range(20):
                for number, step in enumerate(stream(1_000)):
                    agent = f"agent {number % agents}"
                    own = Step(
                        kind="tool",
                        name=step.name,
                        arguments=[index, step.arguments],
                        result=f"{index} {number}",
                        agent=agent,
                    )
                    guard.check(own)
                    if records:
                        guard.record(own)
            del step, own
            gc.collect()
            kept = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            print(f"  {name:18} {agents} agents {kept / 1024:6.1f} KiB")


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}")
    against_naive()
    memory()
    if "--quick" not in sys.argv:
        over_time()
