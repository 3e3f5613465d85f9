"""Steps files: what each field means, when steps happen, and what is said about a bad line."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.replay import ReplayError, read_run
from otel_loopguard.steps import Step, ToolCall

TOOL = {"type": "tool", "name": "search"}
LLM = {"type": "llm", "name": "chat"}


def steps_of(*steps: dict[str, Any], **line: Any) -> list[Step | None]:
    return [entry.step for entry in read_run(json.dumps({"steps": steps, **line})).steps]


def step_of(**fields: Any) -> Step:
    [step] = steps_of({**TOOL, **fields})
    assert step is not None
    return step


def turn_of(**fields: Any) -> Step:
    [step] = steps_of({**LLM, **fields})
    assert step is not None
    return step


def sha(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


@pytest.mark.parametrize(
    ("line", "run_id"),
    [
        ({"run_id": "r", "id": "i"}, "r"),
        ({"id": "i"}, "i"),
        ({"id": 7}, "7"),
        ({"run_id": None, "id": "i"}, "i"),
        ({}, "line-12"),
    ],
)
def test_run_id(line: dict[str, Any], run_id: str):
    assert read_run(json.dumps({**line, "steps": []}), number=12).run_id == run_id


@pytest.mark.parametrize(
    ("line", "policy"),
    [
        ({"policy": {"limits": {"max_steps": 3}}}, {"limits": {"max_steps": 3}}),
        ({"policy": None}, {}),
        ({}, {}),
    ],
)
def test_policy(line: dict[str, Any], policy: dict[str, Any]):
    assert read_run(json.dumps({**line, "steps": []})).policy == policy


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({}, "arguments", UNKNOWN),
        ({"arguments": None}, "arguments", UNKNOWN),
        ({"arguments": {}}, "arguments", {}),
        ({"arguments": ""}, "arguments", ""),
        ({"arguments": '{"q": '}, "arguments", '{"q": '),
        ({"arguments": {"q": [1, 1.5, None, "x"]}}, "arguments", {"q": [1, 1.5, None, "x"]}),
        ({}, "result", UNKNOWN),
        ({"result": None}, "result", UNKNOWN),
        ({"result": ""}, "result", ""),
        ({"result": []}, "result", []),
        ({"result": {"a": 1}}, "result", {"a": 1}),
        ({}, "error", None),
        ({"error": None}, "error", None),
        ({"error": False, "result": "fine"}, "error", None),
        ({"error": ""}, "error", None),
        ({"error": True, "result": "it broke"}, "error", "it broke"),
        ({"error": True, "result": {"code": 5}}, "error", '{"code": 5}'),
        ({"error": True}, "error", "error"),
        ({"error": True, "result": ""}, "error", "error"),
        ({"error": "TimeoutError: 5 s"}, "error", "TimeoutError: 5 s"),
        ({"call_id": "c1"}, "call_id", "c1"),
        ({"call_id": 1}, "call_id", "1"),
        ({"agent": "worker"}, "agent", "worker"),
        ({"agent": None}, "agent", ""),
        ({"agent": "d2", "parent": "d1"}, "agent_parent_id", "d1"),
        ({"agent": "d2", "parent": "d1"}, "agent_id", "d2"),
        ({"finish_reason": "stop"}, "finish_reasons", ("stop",)),
        ({"finish_reason": None}, "finish_reasons", ()),
        ({"input_tokens": 12}, "input_tokens", 12),
        ({"output_tokens": 0}, "output_tokens", 0),
        ({"output_tokens": None}, "output_tokens", None),
        ({"cache_read_tokens": 5}, "cache_read_tokens", 5),
        ({"cost_usd": 0.25}, "cost_usd", 0.25),
        ({"cost_usd": 1}, "cost_usd", 1.0),
        ({"provider": "openai", "model": "gpt-5"}, "provider", "openai"),
        ({"provider": "openai", "model": "gpt-5"}, "model", "gpt-5"),
        ({"model": {"not": "a name"}}, "model", ""),
        ({"batch": 3}, "batch", "3"),
        ({"approved_by_user": True}, "approved", True),
        ({"approved_by_user": None}, "approved", False),
        ({"a field of tomorrow": {"x": 1}}, "name", "search"),
    ],
)
def test_fields_of_a_step(fields: dict[str, Any], name: str, expected: object):
    assert getattr(step_of(**fields), name) == expected


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({}, "output", UNKNOWN),
        ({"result": None}, "output", UNKNOWN),
        ({"result": ""}, "output", ""),
        ({"result": "done"}, "output", "done"),
        ({"result": {"answer": 42}}, "output", '{"answer": 42}'),
        ({"result": "done"}, "result", UNKNOWN),
        ({}, "tool_calls", UNKNOWN),
        ({"tool_calls": None}, "tool_calls", UNKNOWN),
        ({"tool_calls": []}, "tool_calls", ()),
        (
            {"tool_calls": [{"name": "f", "arguments": {"a": 1}, "id": "c1"}, {"name": "g"}]},
            "tool_calls",
            (ToolCall(name="f", arguments={"a": 1}, call_id="c1"), ToolCall(name="g")),
        ),
        ({"name": None}, "name", ""),
    ],
)
def test_fields_of_a_model_turn(fields: dict[str, Any], name: str, expected: object):
    assert getattr(turn_of(**fields), name) == expected


def test_a_user_turn_is_no_step_and_takes_its_number():
    run = read_run(json.dumps({"steps": [{"type": "user", "result": "hi"}, TOOL]}))
    assert [(entry.index, entry.step is None) for entry in run.steps] == [(1, True), (2, False)]


def test_an_agents_summed_usage_counts_only_where_nothing_below_reported_any():
    agent = {"type": "agent", "name": "a", "input_tokens": 9, "output_tokens": 9, "cost_usd": 1}
    [_, above] = steps_of({**LLM, "input_tokens": 4}, agent)
    [alone] = steps_of(agent)
    assert above is not None
    assert alone is not None
    assert (above.input_tokens, above.output_tokens, above.cost_usd) == (None, None, None)
    assert (alone.input_tokens, alone.output_tokens, alone.cost_usd) == (9, 9, 1)


class TestHashes:
    def test_a_whole_value_is_used_itself(self):
        step = step_of(
            arguments={"b": 1, "a": "ü"},
            args_sha=sha('{"a":"ü","b":1}')[:16],
            result="text",
            result_sha=sha("text")[:16],
        )
        assert (step.arguments, step.result) == ({"b": 1, "a": "ü"}, "text")

    def test_arguments_of_text_may_be_hashed_as_text_or_as_json(self):
        assert step_of(arguments="x", args_sha=sha("x")).arguments == "x"
        assert step_of(arguments="x", args_sha=sha('"x"')).arguments == "x"

    def test_a_cut_value_is_known_by_the_hash_of_the_whole(self):
        one = step_of(result="the same start", result_sha="ab12")
        same = step_of(result="the same", result_sha="AB12")
        other = step_of(result="the same start", result_sha="ab13")
        assert one.result == same.result
        assert one.result != other.result

    @pytest.mark.parametrize(
        ("length", "whole"), [(4, True), (5, False), (3, False), ("4", False), (None, False)]
    )
    def test_a_text_of_the_length_of_the_whole_is_whole(self, length: object, *, whole: bool):
        step = step_of(result="text", result_sha="ab12", result_len=length)
        assert (step.result == "text") is whole

    def test_a_hash_without_a_value_is_enough(self):
        one, same, other = (step_of(args_sha=digest).arguments for digest in ("01", "01", "02"))
        assert one is not UNKNOWN
        assert one == same != other

    def test_a_hash_holds_nothing_that_masks_for_volatile_parts_would_touch(self):
        shown = step_of(args_sha="0123456789abcdef" * 2).arguments
        assert isinstance(shown, str)
        assert not set(shown.removeprefix("sha:")) & set("0123456789abcdef")

    def test_a_cut_model_output_is_known_by_the_hash_of_the_whole(self):
        turn = turn_of(result="the start", result_sha="ab12")
        assert isinstance(turn.output, str)
        assert turn.output not in ("the start", "")


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (
            {"success": True, "label": "loop", "source": "s", "agent": "a", "model": "m"},
            (True, "loop", "s", "a", "m"),
        ),
        ({"success": False, "label": False}, (False, False, "", "", "")),
        ({"success": "yes", "label": {}, "source": 1, "agent": [], "model": None}, (None,) * 2),
        ({}, (None, None, "", "", "")),
    ],
)
def test_what_is_known_of_a_run(line: dict[str, Any], facts: tuple[object, ...]):
    run = read_run(json.dumps({"steps": [], **line}))
    known = (run.success, run.label, run.origin, run.agent, run.model)
    assert known == (*facts, "", "", "")[:5]


@pytest.mark.parametrize(
    ("line", "unclear"),
    [
        ({"success": "yes"}, ["field 'success': expected true, false or null, got 'yes'"]),
        ({"label": 1}, ["field 'label': expected a word, true, false or null, got 1"]),
        ({"success": None, "label": None}, []),
        ({"success": {"of": "others"}, "label": ["theirs"]}, []),
        ({"success": False, "label": "any word"}, []),
    ],
)
def test_what_is_no_success_and_no_label_is_named(line: dict[str, Any], unclear: list[str]):
    assert list(read_run(json.dumps({"steps": [], **line})).unclear) == unclear


def test_a_run_is_that_of_the_first_agent_that_a_step_names():
    steps = [TOOL, {**TOOL, "agent": 7}, {**TOOL, "agent": "second"}]
    assert read_run(json.dumps({"steps": steps})).agent == "7"
    assert read_run(json.dumps({"steps": steps, "agent": "whose run it is"})).agent == (
        "whose run it is"
    )


def moments_of(*steps: dict[str, Any]) -> list[tuple[float, str]]:
    """Return what happens when: `+1` the first step starts, `-1` it ends."""
    run = read_run(json.dumps({"steps": [{**TOOL, **step} for step in steps]}))
    return [(m.at_s, f"{'-' if m.is_end else '+'}{m.position + 1}") for m in run.moments]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [{"dt_s": 2}, {"dt_s": 3}], [(0, "+1"), (2, "-1"), (2, "+2"), (5, "-2")], id="in turn"
        ),
        pytest.param(
            [{"dt_s": 2}, {"gap_s": 10, "dt_s": 1}],
            [(0, "+1"), (2, "-1"), (12, "+2"), (13, "-2")],
            id="idle before",
        ),
        pytest.param(
            [{"dt_s": 1, "advance_s": 60}, {}],
            [(0, "+1"), (1, "-1"), (61, "+2"), (61, "-2")],
            id="idle after",
        ),
        pytest.param(
            [{}, {"dt_s": None}], [(0, "+1"), (0, "-1"), (0, "+2"), (0, "-2")], id="no times"
        ),
        pytest.param(
            [{"batch": 1, "dt_s": 9}, {"batch": 1, "dt_s": 2}, {"dt_s": 1}],
            [(0, "+1"), (0, "+2"), (2, "-2"), (9, "-1"), (9, "+3"), (10, "-3")],
            id="a batch starts together",
        ),
        pytest.param(
            [{"batch": 1}, {"batch": 1}, {"batch": 2}],
            [(0, "+1"), (0, "+2"), (0, "-1"), (0, "-2"), (0, "+3"), (0, "-3")],
            id="a batch without times starts together",
        ),
        pytest.param(
            [{"ended": False, "dt_s": 5}, {"dt_s": 1}],
            [(0, "+1"), (5, "+2"), (6, "-2")],
            id="one that never ends",
        ),
        pytest.param(
            [
                {"dt_s": 100, "contains": ["child"]},
                {"dt_s": 2, "agent": "child"},
                {"dt_s": 3, "agent": "child"},
                {"dt_s": 1},
            ],
            [
                *((0, "+1"), (0, "+2"), (2, "-2"), (2, "+3"), (5, "-3")),
                *((100, "-1"), (100, "+4"), (101, "-4")),
            ],
            id="one around others",
        ),
        pytest.param(
            [{"dt_s": 1, "contains": ["child"]}, {"dt_s": 5, "agent": "child"}],
            [(0, "+1"), (0, "+2"), (5, "-2"), (5, "-1")],
            id="one around others ends after them",
        ),
        pytest.param(
            [
                {"batch": 1, "contains": ["x"]},
                {"batch": 1, "contains": ["y"]},
                {"dt_s": 2, "agent": "y"},
                {"dt_s": 2, "agent": "x"},
            ],
            [
                (0, "+1"),
                (0, "+2"),
                (0, "+3"),
                (2, "-3"),
                (2, "+4"),
                (4, "-4"),
                (4, "-2"),
                (4, "-1"),
            ],
            id="two side by side around others",
        ),
        pytest.param(
            [
                {"contains": ["x"]},
                {"agent": "x", "contains": ["y"]},
                {"agent": "y", "dt_s": 2},
                {"agent": "x", "dt_s": 1},
            ],
            [
                (0, "+1"),
                (0, "+2"),
                (0, "+3"),
                (2, "-3"),
                (2, "-2"),
                (2, "+4"),
                (3, "-4"),
                (3, "-1"),
            ],
            id="one around one around others",
        ),
        pytest.param(
            [{"dt_s": 1, "contains": "all"}], [(0, "+1"), (1, "-1")], id="around the past"
        ),
    ],
)
def test_times(steps: list[dict[str, Any]], expected: list[tuple[float, str]]):
    assert moments_of(*steps) == expected


def test_tenths_of_seconds_add_up():
    last_s, _ = moments_of(*[{"dt_s": 0.1}] * 600)[-1]
    assert last_s == 60


def test_a_step_carries_its_times():
    [_, step] = steps_of({**TOOL, "dt_s": 2}, {**TOOL, "dt_s": 3})
    [endless] = steps_of({**TOOL, "dt_s": 2, "ended": False})
    assert step is not None
    assert endless is not None
    assert (step.started_s, step.ended_s) == (2, 5)
    assert (endless.started_s, endless.ended_s) == (0, None)


KINDS = "'tool', 'llm', 'agent', 'custom' or 'user'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({}, "steps: expected this field, got nothing"),
        ({"steps": 3}, "steps: expected an array, got 3"),
        ({"steps": [7]}, "step 1: expected an object, got 7"),
        ({"steps": [TOOL, {}]}, f"step 2, field 'type': expected {KINDS}, got nothing"),
        ({"steps": [{"type": "tol"}]}, f"step 1, field 'type': expected {KINDS}, got 'tol'"),
        (
            {"steps": [{"type": "tool"}]},
            "step 1, field 'name': expected the name of the tool, got nothing",
        ),
        (
            {"steps": [{**TOOL, "dt_s": -1}]},
            "step 1, field 'dt_s': expected a number >= 0.0, got -1",
        ),
        (
            {"steps": [{**TOOL, "gap_s": "1"}]},
            "step 1, field 'gap_s': expected a number or null, got '1'",
        ),
        (
            {"steps": [{**TOOL, "dt_s": float("inf")}]},
            "step 1, field 'dt_s': expected a number <= 1000000000000.0, got inf",
        ),
        (
            {"steps": [{**TOOL, "dt_s": float("nan")}]},
            "step 1, field 'dt_s': expected a number >= 0.0, got nan",
        ),
        (
            {"steps": [{**LLM, "input_tokens": True}]},
            "step 1, field 'input_tokens': expected a whole number or null, got True",
        ),
        (
            {"steps": [{**LLM, "input_tokens": -5}]},
            "step 1, field 'input_tokens': expected a whole number >= 0, got -5",
        ),
        (
            {"steps": [{**LLM, "tool_calls": [{"id": "c"}]}]},
            "step 1, field 'tool_calls[0].name': expected this field, got nothing",
        ),
        (
            {"steps": [{**TOOL, "error": {"a": 1}}]},
            "step 1, field 'error': expected true or false or a string or null, got {'a': 1}",
        ),
        (
            {"steps": [{**TOOL, "name": "x" * 70, "ended": 1}]},
            "step 1, field 'ended': expected true or false or null, got 1",
        ),
        ({"steps": [], "policy": 5}, "policy: expected an object or null, got 5"),
        (
            {"steps": [], "run_id": []},
            "run_id: expected a whole number or a string or null, got []",
        ),
    ],
)
def test_a_bad_field_is_named_with_what_was_expected(line: dict[str, Any], message: str):
    with pytest.raises(ReplayError) as caught:
        read_run(json.dumps(line))
    assert str(caught.value) == message


def test_a_long_value_is_shortened_in_the_message():
    with pytest.raises(ReplayError) as caught:
        steps_of({**TOOL, "call_id": ["x" * 500]})
    assert str(caught.value).endswith("got ['" + "x" * 55 + "...")


def test_text_that_is_no_utf_8_is_read_as_far_as_json_allows():
    assert read_run('{"run_id": "\ud83d", "steps": []}').run_id == "\ud83d"
    with pytest.raises(ReplayError, match="expected UTF-8 text"):
        read_run(b'{"run_id": "\xff", "steps": []}')


def test_a_run_may_hold_half_of_a_surrogate_pair():
    run = read_run('{"run_id": "\\ud83d", "steps": [{"type": "tool", "name": "a"}]}')
    assert run.run_id == "\ud83d"
