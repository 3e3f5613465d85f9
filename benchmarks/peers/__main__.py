"""Prints what other guards cost and catch beside otel-loopguard: `make bench-peers`."""

from __future__ import annotations

import importlib
import itertools
import json
import logging
import os
import statistics
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from benchmarks.peers._adapter import Contender
from benchmarks.peers._costs import Cost, Playing, kept_by_a_run, measure
from benchmarks.peers._scoring import is_wrong, play, read_scenarios, score
from benchmarks.peers._stream import healthy_calls

OURS = ("naive", "loopguard")
PEERS = (
    "able_harness_kit",
    "agent_loop_guard",
    "agentbelt_loop",
    "agentguard47",
    "aura_guard",
    "runbound",
    "steerplane",
    "trajectory_fuse",
)
EARLY, LATE, KEPT = 1_000, 20_000, 2_000


def contenders() -> tuple[list[Contender], list[str]]:
    """Return what can be imported, the baseline first, and a line on each peer that cannot."""
    found: list[Contender] = []
    missing: list[str] = []
    for name in (*OURS, *PEERS):
        try:
            found += importlib.import_module(f"benchmarks.peers.{name}").CONTENDERS
        except Exception as error:
            if name in OURS:
                raise
            missing.append(f"{name.replace('_', '-')}: cannot be used here: {error!r}")
    return found, missing


def titled(contender: Contender) -> str:
    try:
        return f"{contender.name} {version(contender.name)}"
    except PackageNotFoundError:
        return contender.name


def costs(every: Sequence[Contender], *, rounds: int, limit_s: float) -> None:
    spare = 4 * rounds * 50
    calls = list(itertools.islice(healthy_calls(), LATE + spare))
    size = statistics.mean(len(json.dumps(call.arguments)) for call in calls[:EARLY])
    playing = [Playing(each, calls) for each in every if each.timed]
    early = measure(playing, playing[0], EARLY, rounds=rounds, limit_s=limit_s)
    late = measure(playing, playing[0], LATE, rounds=rounds, limit_s=2 * limit_s)
    print(
        f"\nCost of a step of a healthy run, arguments of {size:.0f} characters, results of "
        f"{len(calls[0].result)}\n(µs and ratio to the baseline, medians of {rounds} interleaved "
        f"rounds), and what a run keeps\n"
    )
    print(
        f"{'':28}{f'after {EARLY:,} steps':>22}{f'after {LATE:,} steps':>24}"
        f"{'stops':>8}{f'KiB after {KEPT:,}':>17}"
    )
    for each in playing:
        name = each.contender.name
        if each.failure:
            print(f"{titled(each.contender):28}  failed: {each.failure}")
            continue
        memory = memory_cell(each.contender, limit_s)
        print(
            f"{titled(each.contender):28}{cell(early[name], EARLY):>22}{cell(late[name], LATE):>24}"
            f"{each.stops:>8,}{memory:>17}"
        )
    print("\n@n: slower than the time it was given; measured after n steps instead.")
    print("stops: verdicts against the healthy stream. Each guard was asked on after them.")


def cell(cost: Cost, target: int) -> str:
    place = "" if cost.after == target else f" @{cost.after:,}"
    digits = 1 if cost.microseconds < 1_000 else 0
    return f"{cost.microseconds:,.{digits}f} {cost.ratio:,.{2 * digits}f}x{place}"


def memory_cell(contender: Contender, limit_s: float) -> str:
    try:
        done, kept = kept_by_a_run(contender, KEPT, limit_s)
    except Exception as error:  # noqa: BLE001 -- a foreign guard may raise anything
        return type(error).__name__
    return f"{kept:,.1f}" + ("" if done == KEPT else f" @{done:,}")


def verdicts(every: Sequence[Contender]) -> None:
    scenarios = read_scenarios()
    rows = [(each, [play(each, scenario) for scenario in scenarios]) for each in every]
    first = score(rows[0][1])
    print(
        f"\nVerdicts on {len(scenarios)} scenarios: of {first.loops} loops, caught within 12 tool "
        f"calls (t11: 42); of {first.healthy} healthy runs,\nstopped, or only warned about\n"
    )
    heading = f"{'balanced':>9}{'caught':>7}{'late':>5}{'stopped':>8}{'warned':>7}{'crashed':>8}"
    print(f"{'':28}{heading}  wrong")
    for each, outcomes in rows:
        total = score(outcomes)
        wrong = " ".join(o.scenario.partition("_")[0] for o in outcomes if is_wrong(o))
        print(
            f"{titled(each):28}{total.balanced:>9.2f}{total.caught:>7}{total.late:>5}"
            f"{total.stopped:>8}{total.warned:>7}{total.crashed:>8}  {wrong}"
        )
        print(f"  {each.options}")


def main() -> None:
    logging.disable(logging.CRITICAL)  # a log line for each verdict is not what is compared
    quick = "--quick" in sys.argv
    every, missing = contenders()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    verdicts(every)
    costs(every, rounds=5 if quick else 31, limit_s=2.0 if quick else 15.0)
    for line in missing:
        print(line)


if __name__ == "__main__":
    main()
