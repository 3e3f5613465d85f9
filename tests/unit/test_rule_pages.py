"""The pages about rules are what the code says now, and what they show is so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard.backtest import Said
from otel_loopguard.detectors import DETECTORS, RULES, Detector
from otel_loopguard.options.rules import RULES as SETTABLE
from otel_loopguard.policy import Policy
from otel_loopguard.settings import Limits
from scripts.measure_rules import OPTIONAL_RULES, UNSEEN, Measured, Spoken, measure
from scripts.rule_page import EXAMPLES, SECTIONS, example_of, parts_of
from scripts.rule_page_policy import policy_text
from scripts.rule_page_tables import (
    largest_of,
    limits_of,
    measured_table,
    share,
    together_table,
)
from scripts.rule_pages import PAGES, SOURCES, pages, read_measured

BY_RULE = pytest.mark.parametrize("detector", DETECTORS, ids=[d.rule for d in DETECTORS])
WRITTEN = pages(read_measured())


@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_is_what_the_code_says(name: str):
    assert (PAGES / name).read_text(encoding="utf-8") == WRITTEN[name], "run `make rule-pages`"


def test_there_is_a_page_and_an_example_for_each_rule_and_no_other():
    rules = {detector.rule for detector in DETECTORS}

    assert {path.name for path in PAGES.iterdir()} == {*WRITTEN, "measured.json"}
    assert {*WRITTEN} == {"index.md", *(f"{rule}.md" for rule in rules)}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == rules


@BY_RULE
def test_a_docstring_has_all_sections_and_no_other(detector: type[Detector]):
    summary, sections = parts_of(detector)

    assert summary.endswith(".")
    assert tuple(sections) == SECTIONS
    assert all(sections.values())


@BY_RULE
def test_an_example_has_its_rule_alone_and_shows_it_speak(detector: type[Detector]):
    said, code = example_of(detector)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 -- the project's own example

    assert said.endswith(".")
    assert names["policy"].rule_ids == (detector.rule,)
    assert '("abort", ' in code or '("warn", ' in code or f'"{detector.reason}"' in code


@BY_RULE
def test_the_policy_on_a_page_sets_the_rule(detector: type[Detector]):
    text = policy_text(detector)
    policy = Policy.from_toml(text)
    settings, rule = policy.settings, detector.rule
    told = re.findall(r"^(\w+) = ", text, re.MULTILINE)

    assert f"```toml\n{text}\n```" in WRITTEN[f"{rule}.md"]
    assert rule in policy.rule_ids
    if rule not in RULES:
        assert set(limits_of(detector)) <= set(told)
        assert settings.agents["research-*"].limits is not None
        return
    assert ("search" in settings.tools) == (rule in SETTABLE["tool"])
    assert ("research-*" in settings.agents) == (rule in SETTABLE["agent"])
    assert settings.for_agent("research-7").rules.get(rule) == (
        None if rule in SETTABLE["agent"] else settings.rules[rule]
    )


def test_each_limit_is_on_one_page():
    named = [name for detector in DETECTORS for name in limits_of(detector)]

    assert sorted(named) == sorted(Limits.__struct_fields__)


def test_names_of_other_rules_lead_to_their_pages():
    page = WRITTEN["repeated_call.md"]

    assert "[`repeated_result`](repeated_result.md)" in page
    assert "[`repeated_call`]" not in page
    assert '{"repeated_call": True}' in page, "code stays as it is"


def test_each_rule_was_measured_or_the_page_says_why_not():
    measured = read_measured()
    lines = [line.rule for line in measured.lines]

    assert {*lines} | {*UNSEEN} == {detector.rule for detector in DETECTORS}
    assert {*lines} & {*UNSEEN} == set()
    for rule in {*lines} & RULES - {*OPTIONAL_RULES}:
        assert lines.count(rule) == 1
    for rule, why in UNSEEN.items():
        assert f"Not on the [recordings](index.md#recordings): {why}." in WRITTEN[f"{rule}.md"]


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    """Return what is found in six equal calls that succeeded, nine that did not, and four turns."""
    call = {"type": "tool", "name": "read", "arguments": {"path": "a"}, "result": "text"}
    turn = {"type": "llm", "name": "small-model", "result": "same", "input_tokens": 40_000}
    runs = [
        {"run_id": "fine", "source": "a/b", "success": True, "steps": [call] * 4},
        {"run_id": "odd", "source": "a/b", "success": True, "steps": [call] * 6},
        {"run_id": "stuck", "source": "c/d", "success": False, "steps": [call] * 9},
        {"run_id": "talk", "source": "c/d", "success": True, "steps": [turn] * 4},
    ]
    recording = tmp_path / "runs.jsonl"
    recording.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return measure([str(recording)], {"stuck": Said(label="loop")})


def found_at(measured: Measured, rule: str, at: str = "") -> dict[str, Spoken]:
    [line] = (line for line in measured.lines if (line.rule, line.at) == (rule, at))
    return line.by_source


def test_runs_are_counted_by_what_they_have(measured: Measured):
    assert measured.recordings["a/b"].succeeded == {"steps": 2, "turns": 0, "tokens": 0}
    assert measured.recordings["c/d"].runs == {"steps": 2, "turns": 1, "tokens": 1}
    assert measured.recordings["c/d"].succeeded == {"steps": 1, "turns": 1, "tokens": 1}
    assert [found.loops for found in measured.recordings.values()] == [0, 1]


def test_rules_are_measured_at_their_defaults(measured: Measured):
    assert found_at(measured, "repeated_result") == {
        "a/b": Spoken(warned=2, stopped=1, succeeded_warned=2, succeeded_stopped=1),
        "c/d": Spoken(warned=1, stopped=1, loops_stopped=1),
    }
    assert found_at(measured, "repeated_output") == {"c/d": Spoken(warned=1, succeeded_warned=1)}


def test_limits_are_measured_at_several_values(measured: Measured):
    reads = "max_context_tokens = "

    assert found_at(measured, "context_budget", f"{reads}30_000") == {
        "c/d": Spoken(stopped=1, succeeded_stopped=1)
    }
    assert found_at(measured, "context_budget", f"{reads}60_000") == {}
    assert set(found_at(measured, "repeated_call_limit", "max_repeated_calls = 5")) == {
        "a/b",
        "c/d",
    }
    assert set(found_at(measured, "repeated_call_limit", "max_repeated_calls = 3")) == {
        "a/b",
        "c/d",
    }


def test_rules_that_are_off_by_default_are_measured_at_several_thresholds(measured: Measured):
    assert set(found_at(measured, "similar_calls", "abort = 3")) == {"a/b", "c/d"}
    assert set(found_at(measured, "similar_calls", "abort = 6")) == {"a/b", "c/d"}
    assert found_at(measured, "similar_calls", "abort = 10") == {}


def test_a_page_adds_up_what_was_measured(measured: Measured):
    by_rule = {detector.rule: detector for detector in DETECTORS}
    rows = measured_table(by_rule["repeated_result"], measured).splitlines()[2:]

    assert rows == [
        "| a/b | 2 | 1 | 2 | 2 | 1 | - |",
        "| c/d | 2 | 1 | 1 | 0 | 0 | 1 of 1 |",
        f"| all of them | 4 | 2 | 3 | {share(2, 3)} | {share(1, 3)} | 1 of 1 |",
    ]
    assert share(1, 3) == "1 (33.33 %, 6.15 % to 79.23 %)"
    of_turns = measured_table(by_rule["context_budget"], measured).splitlines()
    assert [row.split(" | ")[0] for row in of_turns[2:]] == ["| c/d", "| all of them"]


def test_the_default_policy_is_measured_as_a_whole(measured: Measured):
    assert measured.together == {
        "a/b": Spoken(warned=2, stopped=1, succeeded_warned=2, succeeded_stopped=1),
        "c/d": Spoken(warned=2, stopped=1, succeeded_warned=1, loops_stopped=1),
    }
    assert largest_of(measured) == "a/b"
    assert together_table(measured).splitlines()[2:] == [
        "| that succeeded, in a/b | 1 of 2 (50.00 %, 9.45 % to 90.55 %) |",
        "| that succeeded, in all other sources | 0 of 1 (0.00 %, 0.00 % to 79.35 %) |",
        "| labelled as loops | 1 of 1 (100.00 %, 20.65 % to 100.00 %) |",
        "| that did not succeed | 1 of 1 (100.00 %, 20.65 % to 100.00 %) |",
    ]


def test_the_readme_has_the_figures_that_were_measured():
    measured = read_measured()
    shown = re.findall(r"[0-9,]+ of [0-9,]+", together_table(measured))
    runs = sum(source.runs["steps"] for source in measured.recordings.values())
    readme = " ".join((PAGES.parents[1] / "README.md").read_text(encoding="utf-8").split())

    assert len(shown) == 4
    assert [figure for figure in (*shown, f"{runs:,} recorded runs") if figure not in readme] == []
    assert {*measured.recordings} == {*SOURCES}


def test_a_recording_that_cannot_be_read_is_not_half_measured(tmp_path: Path):
    recording = tmp_path / "runs.jsonl"
    recording.write_text('{"steps": []}\n{"steps": 5}\n')

    with pytest.raises(SystemExit, match=r"runs\.jsonl: line 2: "):
        measure([str(recording)], {})
