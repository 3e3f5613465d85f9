"""Script files: read as they are written, and refused with the line of each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_loopguard.testing.scripts import (
    NoTurnError,
    ScriptedCall,
    ScriptedError,
    ScriptFileError,
    Turn,
    Usage,
    read_script,
    script_from,
    script_named,
    script_of,
)

TOML = """\
# what a run did
[[turns]]
text = "I look it up."
calls = [
  { name = "search", arguments = { query = "otel" } },
  { name = "lookup" },
]
usage = { input_tokens = 1200, cached_tokens = 1024, output_tokens = 30 }

[[turns]]
delay_s = 0.5
error = { status = 529, message = "overloaded" }

[[turns]]
calls = [{ name = "search", arguments = '{"query": otel}' }, { name = "a", arguments = "{}" }]

[[turns]]
error.status = 503

[[turns]]
text = "It is a"
finish_reason = "max_tokens"
"""
TURNS = [
    {
        "text": "I look it up.",
        "calls": [{"name": "search", "arguments": {"query": "otel"}}, {"name": "lookup"}],
        "usage": {"input_tokens": 1200, "cached_tokens": 1024, "output_tokens": 30},
    },
    {"delay_s": 0.5, "error": {"status": 529, "message": "overloaded"}},
    {
        "calls": [
            {"name": "search", "arguments": '{"query": otel}'},
            {"name": "a", "arguments": "{}"},
        ]
    },
    {"error": {"status": 503}},
    {"text": "It is a", "finish_reason": "max_tokens"},
]
EXPECTED = [
    Turn(
        text="I look it up.",
        calls=(
            ScriptedCall(name="search", arguments={"query": "otel"}),
            ScriptedCall(name="lookup"),
        ),
        usage=Usage(input_tokens=1200, cached_tokens=1024, output_tokens=30),
    ),
    Turn(delay_s=0.5, error=ScriptedError(status=529, message="overloaded")),
    Turn(
        calls=(
            ScriptedCall(name="search", text='{"query": otel}'),
            ScriptedCall(name="a", text="{}"),
        )
    ),
    Turn(error=ScriptedError(status=503)),
    Turn(text="It is a", finish_reason="length"),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", TOML),
        ("a.jsonl", "".join(f"{json.dumps(turn)}\n" for turn in TURNS)),
        ("a.ndjson", "\n\n".join(json.dumps(turn) for turn in TURNS)),
        ("bom.jsonl", "\ufeff" + "\r\n".join(json.dumps(turn) for turn in TURNS)),
    ],
)
def test_the_turns_are_played_one_after_the_other(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    script = read_script(tmp_path / name)
    assert (script.name, script.counts) == (str(tmp_path / name), "requests")
    assert [script([], count) for count in range(5)] == EXPECTED
    assert script([], 0) == EXPECTED[0], "it is a function: it begins again"


def test_nothing_is_made_up_behind_the_last_turn(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "done"}\n')
    script = read_script(tmp_path / "a.jsonl")
    with pytest.raises(NoTurnError, match=r"a\.jsonl' has 1 turns, and request 2 wants another"):
        script([], 1)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[[turns]]\ntext = 3", 2, "turn 1: Expected `str`, got `int`"),
        ('[[turns]]\n\n[[turns]]\nsaid = "x"', 3, "turn 2: Object contains unknown field `said`"),
        ("[[turns]]\ncalls = [\n {},\n]", 3, "turn 1: Object missing required field `name`"),
        (
            '[[turns]]\n[[turns.calls]]\nname = "a"\narguments = [1]',
            4,
            "turn 1: Expected `str | object`, got `array`",
        ),
        ("[[turns]]\n[turns.usage]\ninput_tokens = 1", 2, "required field `output_tokens`"),
        (
            "[[turns]]\nusage = { input_tokens = 1, cached_tokens = 2, output_tokens = 1 }",
            1,
            "no more cached tokens than input tokens",
        ),
        ('[[turns]]\nfinish_reason = "done"', 2, "finish_reason: expected one of 'stop', "),
        ("[[turns]]\ndelay_s = -1", 1, "delay_s=-1.0 is no delay; expected 0 to 3600 seconds"),
        ("[[turns]]\ndelay_s = nan", 1, "delay_s=nan is no delay"),
        ("[[turns]]\nerror = { status = 200 }", 1, "status 200 is no error; expected 400 to 599"),
        (
            '[[turns]]\ntext = "a"\nerror = { status = 500 }',
            1,
            "a turn with an error answers nothing",
        ),
        ('[[turns]]\ntext = "a"\n[[turn]]\n', 3, "'turn' is nothing that a script file says"),
        ("turns = 3", 1, "turns: expected tables, each under [[turns]]"),
        ("turns = [3]", 1, "turn 1: Expected `object`, got `int`"),
        ("\n[[turns]", 2, "expected TOML, but "),
    ],
)
def test_a_mistake_in_toml_has_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ScriptFileError) as caught:
        read_script(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": "a"', "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"text": 3}', "Expected `str`, got `int` - at `$.text`"),
        ('{"txt": "a"}', "unknown field `txt`"),
        ("[" * 100_000 + "]" * 100_000, "too many lists and objects stand in one another"),
    ],
)
def test_a_bad_line_of_json_has_its_number(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "fine"}}\n\n{line}\n{{"text": "fine"}}\n')
    with pytest.raises(ScriptFileError) as caught:
        read_script(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert said in str(caught.value)


def test_each_mistake_is_told_of_up_to_ten(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("no\n" * 12)
    with pytest.raises(ScriptFileError) as caught:
        read_script(path)
    lines = str(caught.value).splitlines()
    assert [line.split(" ")[0] for line in lines[:-1]] == [f"{path}:{n}:" for n in range(1, 11)]
    assert lines[-1] == f"{path}: and 2 more"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.toml", b"", "no turns in it; expected at least one"),
        ("a.jsonl", b"\n\n", "no turns in it; expected at least one"),
        ("a.toml", b"[[turns]]\ntext = '\xff'", "a.toml:2: expected UTF-8 text"),
        ("a.yaml", b"", "expected the name of a script file to end in '.toml', '.jsonl'"),
    ],
)
def test_a_file_that_is_no_script_says_so(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ScriptFileError) as caught:
        read_script(tmp_path / name)
    assert said in str(caught.value)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(ScriptFileError, match=r"none\.toml: it cannot be read: No such file"):
        read_script(tmp_path / "none.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ScriptFileError, match="it cannot be read: Is a directory"):
        read_script(tmp_path / "folder.toml")


def test_a_script_is_a_name_a_file_or_the_turns_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(TOML)
    named = script_named("finish:3")
    assert script_from(named) is named
    assert script_from("finish:3") == named
    assert script_from(str(path)).name == script_from(path).name == str(path)
    assert script_from(EXPECTED)([], 4) == script_of(EXPECTED)([], 4) == EXPECTED[4]
    with pytest.raises(ValueError, match=r"'a\.yaml' does not exist; expected one of 'endless'"):
        script_from("a.yaml")
