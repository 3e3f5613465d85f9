"""What runs keep: one run, by tracemalloc, and ten thousand at once, by tracemalloc and in RSS.

Steps are those of `bench_guard`: arguments of some 300 characters, results of 500, none like
another; default policy, `check` and `record`.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench_guard import Naive, stream

from otel_loopguard import LoopGuard, Step

SHORT, FULL = 40, 2_000
"""Steps of an everyday run, and of one whose windows are full."""
MANY = ((10_000, 40), (500, 400))
"""Runs at once, and the steps of each."""
STATUS = Path("/proc/self/status")


def steps(length: int, agents: int = 1, first: int = 0) -> Iterator[Step]:
    """Yield steps that nobody else holds on to."""
    for number in range(first, first + length):
        (made,) = stream(1, number)
        yield Step(
            kind="tool",
            name=made.name,
            arguments=made.arguments,
            result=made.result,
            agent=f"agent {number % agents}",
        )


def kept_by(length: int, agents: int) -> float:
    """Return the KiB that a run keeps after some steps."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    guard = LoopGuard()
    for step in steps(length, agents):
        guard.check(step)
        guard.record(step)
        del step
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return kept / 1024


def kept_by_naive() -> float:
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    naive = Naive()
    for step in steps(FULL):
        naive.check(step.name, step.arguments)
        del step
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return kept / 1024


def one_run() -> None:
    kept_by(50, 1)  # what is made once a process is no part of a run
    print(
        "memory of a run, check and record, default policy (naive baseline: "
        f"{kept_by_naive():.1f} KiB)"
    )
    for agents in (1, 8):
        for length in (SHORT, FULL, 20_000):
            print(f"  {length:>6,} steps {agents} agents {kept_by(length, agents):7.1f} KiB")


def resident() -> float:
    """Return the MiB that this process occupies."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def many_runs(kind: str, runs: int, length: int) -> None:
    """Begin all runs, give each its steps in turn, and print what that took."""
    numbers = count()
    play(LoopGuard(), length, next(numbers))
    gc.collect()
    if kind == "traced":
        tracemalloc.start()
    before = resident() if kind == "resident" else tracemalloc.get_traced_memory()[0] / 2**20
    guards = [LoopGuard() for _ in range(runs)]
    for guard in guards:
        play(guard, length, next(numbers))
    gc.collect()
    after = resident() if kind == "resident" else tracemalloc.get_traced_memory()[0] / 2**20
    print(f"  {runs:>6,} runs of {length:>3} steps, {kind:8} {after - before:7.1f} MiB")


def play(guard: LoopGuard, length: int, number: int) -> None:
    for step in steps(length, first=number * length):
        guard.check(step)
        guard.record(step)


def main() -> None:
    one_run()
    print("memory of many runs at once, default policy", flush=True)
    kinds = ["traced", "resident"] if STATUS.exists() else ["traced"]
    for runs, length in MANY:
        for kind in kinds:
            # A process of its own each: what an earlier measurement freed would be used again.
            command = [sys.executable, __file__, kind, str(runs), str(length)]
            subprocess.run(command, check=True)  # noqa: S603 -- this file


if __name__ == "__main__":
    if sys.argv[1:2] in (["traced"], ["resident"]):
        many_runs(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        print(f"Python {sys.version.split()[0]}")
        main()
