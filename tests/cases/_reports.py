"""Public reports and scenarios as data, and what they ask of a verdict."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from otel_loopguard.policy import Policy
from otel_loopguard.replay import ReplayedRun, read_run, replay_run

DATA = Path(__file__).parents[1] / "testdata"

_BUDGETS = frozenset({"step_budget", "llm_call_budget", "tool_call_budget"})

RULES_OF: Mapping[str, frozenset[str]] = {
    "repeated_call": frozenset(
        {
            "repeated_call",
            "repeated_result",
            "revisited_results",
            "no_novelty",
            "stagnation",
            "repeated_call_limit",
        }
    ),
    "repeated_result": frozenset({"repeated_result"}),
    "cycle": frozenset({"cyclic_calls", "agent_handoff_cycle"}),
    "error_loop": frozenset({"repeated_error", "consecutive_errors"}),
    "retry_storm": frozenset({"repeated_error", "step_rate"}),
    "no_progress": frozenset({"unchanged_result", "no_novelty", "stagnation"}),
    "repeated_output": frozenset({"repeated_output"}),
    "truncation_loop": frozenset({"truncated_turns"}),
    "step_budget": _BUDGETS,
    "tool_budget": frozenset({"tool_call_budget"}),
    "token_budget": frozenset({"token_budget", "context_budget"}),
    "cost_budget": frozenset({"cost_budget"}),
    "deadline": frozenset({"time_budget"}),
    "stall": frozenset({"idle_run", "idle_turns"}),
    "depth": frozenset({"agent_depth"}),
    "fanout": _BUDGETS | {"step_rate"},
}
"""The rules that each kind of detector in `expect` stands for."""


class Found(NamedTuple):
    """A violation: what was said, and at which entry of `steps` (from 1), whichever way it came."""

    rule: str
    action: str
    step: int
    phase: str


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a report asks of a guard."""

    trip: bool
    why: str
    detector: str | None = None
    also_ok: tuple[str, ...] = ()
    by_step: int | None = None
    not_before: int = 1
    at: str = "end"
    by_s: float | None = None
    max_steps_after: int | None = None
    contested: bool = False

    @property
    def rules(self) -> frozenset[str]:
        """The rules that may trip; a budget that trips first is right too."""
        kinds = (self.detector, *self.also_ok)
        return frozenset(rule for kind in kinds if kind is not None for rule in RULES_OF[kind])


class Case(NamedTuple):
    """A run, and what is expected of it."""

    id: str
    line: str
    """As it stands in the file."""
    policy: Mapping[str, object]
    steps: Sequence[Mapping[str, Any]]
    expect: Expected

    @property
    def ruling(self) -> Policy:
        """The policy of the case, over the default one."""
        return Policy.from_mapping(self.policy, base=Policy())


def complaints(case: Case, found: Sequence[Found]) -> list[str]:
    """Return what is wrong with a verdict."""
    expect = case.expect
    trip = next((each for each in found if each.action == "abort"), None)
    if trip is None or not expect.trip:
        right = expect.trip is (trip is not None)
        return [] if right else [f"expected a trip: {expect.trip}, got {trip}"]
    last = expect.by_step or len(case.steps)
    late = trip.step > last or (trip.step == last and expect.at == "start" and trip.phase != "pre")
    checks = {
        f"of {sorted(expect.rules)}": trip.rule in expect.rules,
        f"by the {expect.at} of step {last}": not late,
        f"not before step {expect.not_before}": trip.step >= expect.not_before,
    }
    return [f"expected one {what}, got {trip}" for what, holds in checks.items() if not holds]


def too_late_or_touched(case: Case, found: Sequence[Found]) -> list[Found]:
    """Return what is wrong with a verdict on a scenario.

    A loop is to be stopped within twelve tool calls (the one that comes back every third step
    only, within all of its own); of a healthy run nothing is to be said at all.
    """
    if not case.expect.trip:
        return list(found)
    calls = [place for place, step in enumerate(case.steps, 1) if step["type"] == "tool"]
    last = calls[(42 if case.id == "t11_spread" else 12) - 1]
    in_time = any(each.action == "abort" and each.step <= last for each in found)
    return [] if in_time else [*found, Found("caught too late", "none", last, "post")]


def cases(
    those: Mapping[str, Case],
    wrong: Mapping[str, str] | None = None,
    elsewhere: Collection[str] = (),
) -> list[Any]:
    """Return cases as parameters.

    `wrong` says which fail today, and why; those in `elsewhere` have a test of their own.
    """
    reasons = wrong or {}
    assert {*reasons, *elsewhere} <= those.keys()
    return [
        pytest.param(
            case,
            id=name,
            marks=[pytest.mark.xfail(reason=reasons[name])] if name in reasons else [],
        )
        for name, case in those.items()
        if name not in elsewhere
    ]


def replayed(case: Case) -> ReplayedRun:
    """Replay a case as a line of a steps file; its `policy` is taken from the line."""
    return replay_run(read_run(case.line), Policy(), "cases")


def by_engine(case: Case) -> list[Found]:
    """Return the verdict on the steps of a case."""
    return [Found(v.rule, v.action, v.step, v.phase) for v in replayed(case).violations]


def _read(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        yield line, json.loads(line)


CASES: Mapping[str, Case] = {
    data["id"]: Case(
        data["id"],
        line,
        data.get("policy", {}),
        data["steps"],
        msgspec.convert(data["expect"], Expected),
    )
    for line, data in _read("cases.jsonl")
}
SCENARIOS: Mapping[str, Case] = {
    data["id"]: Case(data["id"], line, {}, data["steps"], msgspec.convert(data["expect"], Expected))
    for line, data in _read("scenarios.jsonl")
}
