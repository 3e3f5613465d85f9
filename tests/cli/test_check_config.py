"""`otel-loopguard check-config` as people and scripts run it: what it says, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from tests._command import ROOT, command

PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
FINE = "[limits]\nmax_steps = 100\nmax_calls_per_tool = { send_mail = 1 }\n"


class Result(NamedTuple):
    """What the command did."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Check(Protocol):
    """Runs the command in the test's folder, with variables of ours."""

    def __call__(self, *arguments: str, **variables: str) -> Result: ...


@pytest.fixture
def check(tmp_path: Path) -> Check:
    def run(*arguments: str, **variables: str) -> Result:
        ours = {f"OTEL_LOOPGUARD_{name}": text for name, text in variables.items()}
        done = command("check-config", *arguments, cwd=tmp_path, stdin=b"", **ours)
        return Result(done.returncode, done.stdout, done.stderr)

    return run


def shown(name: str) -> str:
    """Return the block of the page that begins with the name of a file."""
    return PAGE.partition(f"```toml\n# {name}\n")[2].partition("```")[0]


def on_page(result: Result, line: str) -> bool:
    return f"$ {line}\n{(result.stderr + result.stdout).decode()}```\n" in PAGE


def test_the_page_shows_what_it_says_of_mistakes(check: Check, tmp_path: Path):
    (tmp_path / "loopguard.toml").write_text(f"# loopguard.toml\n{shown('loopguard.toml')}")
    result = check("loopguard.toml")

    assert (result.returncode, result.stdout) == (2, b"")
    assert on_page(result, "otel-loopguard check-config loopguard.toml")


def test_the_page_shows_what_it_says_where_there_is_none(check: Check, tmp_path: Path):
    (tmp_path / "good.toml").write_text(f"# good.toml\n{shown('good.toml')}")
    result = check(CONFIG="good.toml", MAX_STEPS="200")

    assert result.returncode == 0
    said = "OTEL_LOOPGUARD_CONFIG=good.toml OTEL_LOOPGUARD_MAX_STEPS=200"
    assert on_page(result, f"{said} otel-loopguard check-config")


def test_json_is_one_object(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text(FINE)
    result = check("--json", "p.toml", ABORT="gate")
    said: dict[str, Any] = json.loads(result.stdout)

    assert (result.returncode, result.stderr) == (0, b"")
    assert (said["file"], said["variables"]) == ("p.toml", ["OTEL_LOOPGUARD_ABORT"])
    assert (said["errors"], said["warnings"]) == ([], [])
    in_force = said["in_force"]
    assert in_force["limits"] == {"max_steps": 100, "max_calls_per_tool": {"send_mail": 1}}
    assert in_force["rules"]["repeated_result"] == {"warn": 3, "abort": 5}
    assert (in_force["mode"], in_force["abort"]) == ("enforce", ["gate"])


def test_json_has_every_mistake_of_file_and_variables(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text("[limits]\nmax_steps = -1\nmax_step = 1\n")
    result = check("--json", CONFIG="p.toml", MAX_STEPS="x", MOD="observe")
    said: dict[str, Any] = json.loads(result.stdout)

    assert (result.returncode, said["in_force"]) == (2, None)
    assert [(error["path"], error["line"]) for error in said["errors"]] == [
        ("limits.max_steps", 2),
        ("limits.max_step", 3),
        ("OTEL_LOOPGUARD_MAX_STEPS", None),
        ("OTEL_LOOPGUARD_MOD", None),
    ]


def test_variables_alone_are_checked(check: Check):
    result = check(MAX_STEPS="-3")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode() == (
        "OTEL_LOOPGUARD_MAX_STEPS: expected a whole number of at least 1 (0 switches it off), "
        "got -3\n"
    )
    assert check().stdout.startswith(b"file       none\nvariables  none\n")


@pytest.mark.parametrize("in_variable", [True, False])
def test_a_file_that_cannot_be_read_is_named(check: Check, *, in_variable: bool):
    result = check(CONFIG="nowhere.toml") if in_variable else check("nowhere.toml")

    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == (
        b"nowhere.toml: the policy file cannot be read: No such file or directory\n"
    )


def test_bytes_that_are_no_text_have_their_line(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_bytes(b"mode = 'observe'\n# \xe9\n")
    result = check("p.toml")

    assert (result.returncode, result.stderr) == (2, b"p.toml:2: expected UTF-8 text (at line 2)\n")
    assert [each["line"] for each in json.loads(check("--json", "p.toml").stdout)["errors"]] == [2]


def test_a_mark_before_the_text_is_no_part_of_it(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text("mode = 'observe'\nscope = 1\n", encoding="utf-8-sig")
    result = check("p.toml")

    assert result.stderr.startswith(b"p.toml:2: scope: expected 'run', ")


def test_what_cannot_be_followed_is_one_line(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text(f"a = {5000 * '['}")
    result = check("p.toml")

    assert (result.returncode, result.stderr) == (
        2,
        b"p.toml: expected TOML, but more than 30 tables and lists stand in one another\n",
    )


def test_a_key_that_is_called_as_a_variable_has_its_line(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text("OTEL_LOOPGUARD_MODE = 'enforce'\n")
    of_file, of_variable = check("p.toml", MOD="x").stderr.splitlines()

    assert of_file.startswith(b"p.toml:1: OTEL_LOOPGUARD_MODE: there is no such option here; ")
    assert of_variable.startswith(b"OTEL_LOOPGUARD_MOD: there is no such variable; ")


def test_of_a_bad_file_nothing_follows_for_variables(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text("[rules.similar_calls]\nwarn = '3'\n")
    [line] = check("p.toml", RULES_SIMILAR_CALLS="on").stderr.splitlines()

    assert line.startswith(b"p.toml:2: rules.similar_calls.warn: expected a whole number ")


@pytest.mark.parametrize(("ending", "code"), [("poll = true", 0), ("poll = 1", 2)])
def test_names_do_what_a_terminal_shows_and_no_more(tmp_path: Path, ending: str, code: int):
    text = (
        f'[tools."\\u00e4\\u001b[31m\\u202e"]\n{ending}\n[agents."\\u00e4*"]\n[agents."\\u00e4b"]\n'
    )
    (tmp_path / "p.toml").write_text(text)
    done = command("check-config", "p.toml", cwd=tmp_path, PYTHONIOENCODING="ascii")
    shown = done.stdout + done.stderr

    assert done.returncode == code, done.stderr
    assert b"?" in shown
    assert b"\x1b" not in shown
    assert b"\\u202e" not in shown


def test_warnings_are_no_mistakes(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text('[agents."a*"]\n[agents.ab]\n')
    result = check("p.toml")

    assert result.returncode == 0
    assert result.stderr.startswith(b'p.toml:2: warning: agents."ab": never counts, for ')


def test_the_schema_is_printed(check: Check):
    result = check("--schema")

    assert json.loads(result.stdout)["title"] == "loopguard.toml"
    assert result.stdout == (ROOT / "otel_loopguard" / "loopguard.schema.json").read_bytes()
