"""Scores verdicts on the scenarios: loops caught in time, healthy runs left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from benchmarks.peers._adapter import Call, Contender, Verdict

SCENARIOS = Path(__file__).resolve().parents[2] / "tests/testdata/scenarios.jsonl"
LIMIT = 12
"""Tool calls within which a loop must be stopped to count as caught."""
LIMITS = {"t11_spread": 42}
"""This one repeats only every third call."""

Ending: TypeAlias = Literal["stop", "warn", "go", "crash"]
"""The worst that the guard said in a run; `crash` if it raised what it does not document."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A small run, and whether it is a loop."""

    id: str
    is_loop: bool
    calls: tuple[Call, ...]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard made of a scenario."""

    scenario: str
    is_loop: bool
    ending: Ending
    at: int = 0
    """Number of the tool call at which it stopped or crashed, from 1; 0 if it did not."""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of all scenarios, counted. What crashed is right in neither group."""

    loops: int
    caught: int
    late: int
    healthy: int
    stopped: int
    warned: int
    """Healthy runs with a warning and no stop."""
    crashed: int
    balanced: float
    """Mean of the share of loops caught and the share of healthy runs that went through."""


def read_scenarios(path: Path = SCENARIOS) -> list[Scenario]:
    with path.open(encoding="utf-8") as lines:
        return [_scenario(json.loads(line)) for line in lines if line.strip()]


def _scenario(line: dict[str, Any]) -> Scenario:
    turn = 0
    calls: list[Call] = []
    for step in line["steps"]:
        if step["type"] == "llm":
            turn += 1
            continue
        call = Call(
            tool=step["name"],
            arguments=step["arguments"],
            result=step["result"],
            failed=bool(step["error"]),
            turn=turn or None,
        )
        calls.append(call)
    return Scenario(id=line["id"], is_loop=line["expect"]["trip"], calls=tuple(calls))


def play(contender: Contender, scenario: Scenario) -> Outcome:
    """Ask the guard about each call of a run of its own, up to the first stop."""
    ending: Ending = "go"
    at = 0
    try:
        judge: Callable[[Any], Verdict] = contender.start()
        for at, call in enumerate(scenario.calls, 1):  # noqa: B007 -- read after the loop
            verdict = judge(contender.prepare(call))
            if verdict == "stop":
                ending = "stop"
                break
            if verdict == "warn":
                ending = "warn"
    except Exception:  # noqa: BLE001 -- a foreign guard may raise anything
        ending = "crash"
    return Outcome(
        scenario=scenario.id,
        is_loop=scenario.is_loop,
        ending=ending,
        at=at if ending in {"stop", "crash"} else 0,
    )


def is_caught(outcome: Outcome) -> bool:
    limit = LIMITS.get(outcome.scenario, LIMIT)
    return outcome.is_loop and outcome.ending == "stop" and outcome.at <= limit


def is_wrong(outcome: Outcome) -> bool:
    if outcome.is_loop:
        return not is_caught(outcome)
    return outcome.ending in {"stop", "crash"}


def score(outcomes: Iterable[Outcome]) -> Score:
    """Count the outcomes. Raises `ValueError` without a loop or without a healthy run."""
    every = list(outcomes)
    loops = [outcome for outcome in every if outcome.is_loop]
    healthy = [outcome for outcome in every if not outcome.is_loop]
    if not loops or not healthy:
        message = f"a score needs loops and healthy runs, got {len(loops)} and {len(healthy)}"
        raise ValueError(message)
    caught = sum(map(is_caught, loops))
    through = len(healthy) - sum(map(is_wrong, healthy))
    return Score(
        loops=len(loops),
        caught=caught,
        late=_count(loops, "stop") - caught,
        healthy=len(healthy),
        stopped=_count(healthy, "stop"),
        warned=_count(healthy, "warn"),
        crashed=_count(every, "crash"),
        balanced=(caught / len(loops) + through / len(healthy)) / 2,
    )


def _count(outcomes: Sequence[Outcome], ending: Ending) -> int:
    return sum(outcome.ending == ending for outcome in outcomes)
