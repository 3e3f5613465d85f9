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

    assert (result.returncode, result.stderr) == (2, b"p.toml: expected UTF-8 text (line 2)\n")


def test_warnings_are_no_mistakes(check: Check, tmp_path: Path):
    (tmp_path / "p.toml").write_text('[agents."a*"]\n[agents.ab]\n')
    result = check("p.toml")

    assert result.returncode == 0
    assert result.stderr.startswith(b'p.toml:2: warning: agents."ab": never counts, for ')


def test_the_schema_is_printed(check: Check):
    result = check("--schema")

    assert json.loads(result.stdout)["title"] == "loopguard.toml"
    assert result.stdout == (ROOT / "otel_loopguard" / "loopguard.schema.json").read_bytes()
