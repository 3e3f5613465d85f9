"""The classes of recorded steps: those that the rule itself counts, whatever else is in force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard.backtest import Outcome, play_files
from otel_loopguard.backtest.fitting import ClassedRun, highest_score
from otel_loopguard.backtest.step_classes import without_rules
from otel_loopguard.detectors._stagnation_classes import WEIGHTS
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.replay.recorded_spans import play_spans
from otel_loopguard.spans import SpanRecord
from tests._recordings import Recording

DATA = Path(__file__).parents[1] / "testdata"


def call(n: object, result: object = "found it", name: str = "search", **more: Any) -> Any:
    return {"type": "tool", "name": name, "arguments": {"q": n}, "result": result, **more}


def classes_of(folder: Path, *steps: Any, policy: Policy | None = None, said: Any = None) -> Any:
    path = folder / "runs.jsonl"
    path.write_text(json.dumps({"steps": steps, "policy": said}))
    [outcome] = play_files([str(path)], [policy or Policy()], classify=True)
    assert isinstance(outcome, Outcome)
    return outcome.classes


def test_steps_have_the_classes_that_the_page_of_the_rule_names(tmp_path: Path):
    steps = [
        {"type": "llm"},
        call(1, "page one"),
        call(1, "page one"),
        call(2, "page two"),
        call(3, error="no such host"),
        call(3, error="no such host"),
        call(1, "page one"),
    ]
    assert classes_of(tmp_path, *steps) == (
        ("novel", "again", "novel", "error_failed", "again_failed", "returned_since"),
    )


def test_a_stop_by_another_rule_changes_nothing(tmp_path: Path):
    steps = [*[call(0)] * 9, *(call(n, f"page {n}") for n in range(1, 5))]
    expected = ("novel", *["again"] * 8, *["novel"] * 4)
    assert classes_of(tmp_path, *steps) == (expected,)
    assert classes_of(tmp_path, *steps, policy=Policy(max_steps=2)) == (expected,)
    assert classes_of(tmp_path, *steps, policy=Policy.none()) == (expected,)
    assert classes_of(tmp_path, *steps, said={"limits": {"max_steps": 2}}) == (expected,)


def test_each_agent_and_each_run_of_a_line_begins_afresh(tmp_path: Path):
    steps = [call(1, agent="a"), call(1, agent="b"), call(1, agent="a"), call(2, "x", agent="b")]
    assert classes_of(tmp_path, *steps) == (("novel", "again"), ("novel", "novel"))
    runs = [call(1, run="one"), call(1, run="one"), call(1, run="two")]
    assert classes_of(tmp_path, *runs) == (("novel", "again"), ("novel",))


def test_what_may_be_repeated_or_is_not_known_has_no_class(tmp_path: Path):
    steps = [call(1), call(1, name="wait"), call(1, name="wait"), call(2, None), call(1)]
    plain = ("novel", "novel", "again", "returned_since")
    assert classes_of(tmp_path, *steps) == (plain,)
    for option in ("poll", "exempt"):
        policy = Policy(tools={"wait": {option: True, "rules": {"repeated_call": {"abort": 2}}}})
        assert classes_of(tmp_path, *steps, policy=policy) == (("novel", "again"),)
    said = {"tools": {"wait": {"poll": True}}}
    assert classes_of(tmp_path, *steps, said=said) == (("novel", "again"),)


def test_the_options_of_a_policy_about_comparing_hold():
    policy = Policy(
        tools={
            "a": {"poll": True},
            "b": {"ignore_arguments": ["q"], "error_patterns": ["bad"], "rules": {}},
            "c": {"writes": True, "rules": {"repeated_call": {"abort": 3}}},
        },
        agents={"x*": {"tools": {"a": {"exempt": True}}, "limits": {"max_steps": 3}}, "y": {}},
        masking={"enabled": False},
        max_steps=3,
    )
    kept = without_rules(policy)
    assert kept.rule_ids == ()
    for agent in ("x1", "y", "z"):
        before, after = (p.settings.for_agent(agent) for p in (policy, kept))
        for tool in "abcd":
            wanted = before.of_tool(tool)
            got = after.of_tool(tool)
            assert (wanted is None) is (got is None)
            for option in ("poll", "exempt", "writes", "ignore_arguments", "error_patterns"):
                assert getattr(got, option, None) == getattr(wanted, option, None), (tool, option)
    assert kept.settings.masking == policy.settings.masking


@pytest.mark.parametrize("name", ["backtest/runs.jsonl", "backtest/tau/airline.jsonl.gz"])
def test_the_scores_are_those_that_the_rule_reaches(name: str):
    alone = {rule: False for rule in Policy().settings.rules if rule != "stagnation"}
    scores: set[float] = set()
    for abort in (2, 5.6, 5.7, 14, 16.8, 16.9):
        levels = {"warn": 0, "abort": abort}
        policy = Policy(rules={**alone, "stagnation": levels})
        for outcome in play_files([str(DATA / name)], [policy], classify=True):
            assert isinstance(outcome, Outcome)
            run = ClassedRun(is_loop=False, agents=outcome.classes or ())
            score = highest_score(run, WEIGHTS)
            assert (outcome.trip is not None) is (score >= abort), (outcome.run_id, score)
            scores.add(score)
    assert max(scores) > 16


@pytest.fixture
def endless(tmp_path: Path) -> str:
    path = tmp_path / "endless.jsonl"
    path.write_bytes(b"".join(Recording("openai-agents-genai", "endless").lines()))
    return str(path)


def test_runs_made_of_spans_have_classes_as_well(endless: str):
    [outcome] = play_files([endless], [Policy()], classify=True)
    assert isinstance(outcome, Outcome)
    assert outcome.classes == (("novel", *["again"] * (outcome.tool_calls - 1)),)
    [outcome] = play_files([endless], [Policy()])
    assert isinstance(outcome, Outcome)
    assert outcome.classes is None


def test_only_the_first_policy_is_asked(endless: str):
    for name in (str(DATA / "backtest" / "runs.jsonl"), endless):
        found = play_files([name], [Policy(), Policy.none()], classify=True)
        outcomes = [outcome for outcome in found if isinstance(outcome, Outcome)]
        assert {outcome.policy for outcome in outcomes} == {0, 1}
        assert all((outcome.classes is None) is (outcome.policy == 1) for outcome in outcomes)


def test_the_number_of_processes_changes_nothing():
    names = [str(DATA / "backtest" / "runs.jsonl")]
    one = list(play_files(names, [Policy()], classify=True))
    assert one == list(play_files(names, [Policy()], classify=True, jobs=2, block=100))
    assert all(isinstance(found, Outcome) and found.classes for found in one)


def test_who_listens_to_spans_hears_of_steps_that_never_end():
    heard: dict[str, LoopGuard] = {}

    def listen(run_id: str) -> LoopGuard:
        return heard.setdefault(run_id, LoopGuard(Policy.none()))

    def span(operation: str, number: int, end: int | None) -> SpanRecord:
        return SpanRecord(
            name=operation,
            trace_id=1,
            span_id=number,
            parent_id=1 if number > 1 else None,
            attributes={"gen_ai.operation.name": operation},
            started_ns=number,
            ended_ns=end,
        )

    spans = [span("invoke_agent", 1, 9), span("chat", 2, 3), span("chat", 4, None)]
    [played] = play_spans(spans, Policy.none(), "file", listen)
    [(run_id, guard)] = heard.items()
    assert (run_id, guard.stats().steps) == (played.run.run_id, played.run.steps)
    assert played.run.steps == 2
