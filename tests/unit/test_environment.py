"""What is read from files and variables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard import (
    LoopGuardSpanProcessor,
    Policy,
    PolicyError,
    RunAborted,
    RunInterrupted,
    read_policy,
)
from otel_loopguard.abort.ladder import checked
from otel_loopguard.environment import read_configuration, resolve_mode

OBSERVING, ENFORCING, SILENT = Policy(mode="observe"), Policy(mode="enforce"), Policy()


def test_a_policy_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "loopguard.toml"
    path.write_text(
        'mode = "enforce"\n[limits]\nmax_steps = 7\n[rules.repeated_result]\nwarn = 2\n',
        encoding="utf-8",
    )

    policy = read_policy(path)

    assert policy == Policy(mode="enforce", rules={"repeated_result": {"warn": 2}}, max_steps=7)
    assert read_policy(str(path)) == policy


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[limits\n", "expected a TOML file"),
        (b"mode = 'observe'\n\xff\xfe", "expected UTF-8 text (at line 2)"),
        (b"\xef\xbb\xbf\n\xff", "expected UTF-8 text (at line 2)"),
        (b"a = " + 5000 * b"[", "expected a TOML file, but more than 30 tables and lists"),
        (b"a = " + 5000 * b"1", "expected a TOML file, but a number in it has more than 4300"),
        (b"[limits]\nmax_stps = 3\n", "limits.max_stps: there is no such option"),
        (b"[limits]\nmax_steps = true\n", "limits.max_steps: expected a whole number"),
        (b'mode = "watch"\n', "mode: expected 'observe' or 'enforce', got 'watch'"),
    ],
)
def test_an_error_names_the_file_and_what_is_wrong(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)

    with pytest.raises(PolicyError) as raised:
        read_policy(path)

    assert str(raised.value).startswith(f"{path}: ")
    assert said in str(raised.value)


def test_a_mark_before_the_text_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "marked.toml"
    path.write_text('mode = "enforce"\n', encoding="utf-8-sig")

    assert read_policy(path).mode == "enforce"


ON = "OTEL_LOOPGUARD_RULES_SIMILAR_CALLS"
"""Of a rule that has no thresholds of its own."""


def test_variables_are_checked_over_the_policy_from_code(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(rules={"similar_calls": {"warn": 3}}, mode="observe")
    monkeypatch.setenv(ON, "on")
    monkeypatch.setenv("OTEL_LOOPGUARD_MAX_STEPS", "3")

    assert LoopGuardSpanProcessor(policy).policy == policy
    with pytest.raises(PolicyError, match=f"^{ON}: expected warn, abort or both, for this rule"):
        LoopGuardSpanProcessor(Policy())


@pytest.mark.parametrize(
    "text", ["[rules.similar_calls]\nwarn = 3\n[limits]\nmax_step = 3\n", "[rules", None]
)
def test_of_a_bad_file_nothing_follows_for_variables(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "bad.toml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(PolicyError) as raised:
        read_configuration({"OTEL_LOOPGUARD_CONFIG": str(path), ON: "on"})
    [line] = str(raised.value).splitlines()
    assert line.startswith("OTEL_LOOPGUARD_CONFIG: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.toml"

    with pytest.raises(PolicyError, match="the policy file cannot be read") as raised:
        read_policy(path)

    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("in_code", "variable", "policy", "can_stop", "expected"),
    [
        ("observe", "enforce", ENFORCING, True, "observe"),
        ("enforce", "observe", OBSERVING, False, "enforce"),
        (None, "observe", ENFORCING, True, "observe"),
        (None, "enforce", OBSERVING, False, "enforce"),
        (None, None, OBSERVING, True, "observe"),
        (None, None, ENFORCING, False, "enforce"),
        (None, "", ENFORCING, False, "enforce"),
        (None, None, SILENT, True, "enforce"),
        (None, None, SILENT, False, "observe"),
    ],
)
def test_the_first_that_says_a_mode_is_heard(
    in_code: Any, variable: str | None, policy: Policy, *, can_stop: bool, expected: str
) -> None:
    variables = {} if variable is None else {"OTEL_LOOPGUARD_MODE": variable}

    said = read_configuration(variables, policy=policy).mode
    assert resolve_mode(in_code, said, can_stop=can_stop) == expected


@pytest.mark.parametrize(
    ("in_code", "variable", "said"),
    [
        ("stop", "observe", "mode: expected 'observe' or 'enforce', got 'stop'"),
        (None, "stop", "OTEL_LOOPGUARD_MODE: expected 'observe' or 'enforce', got 'stop'"),
    ],
)
def test_a_mode_that_does_not_exist_names_where_it_stands(
    in_code: Any, variable: str, said: str
) -> None:
    with pytest.raises(PolicyError) as raised:
        configured = read_configuration({"OTEL_LOOPGUARD_MODE": variable})
        resolve_mode(in_code, configured.mode, can_stop=False)

    assert str(raised.value) == said


def test_a_processor_asks_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_MODE", "observe")

    assert LoopGuardSpanProcessor(ENFORCING).mode == "observe"
    monkeypatch.delenv("OTEL_LOOPGUARD_MODE")
    assert LoopGuardSpanProcessor().mode == "observe"
    enforcing = LoopGuardSpanProcessor(abort=())
    assert enforcing.mode == "enforce"


def test_stops_that_will_not_act_are_pointed_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_MODE", "observe")

    LoopGuardSpanProcessor(abort_hooks=[print])

    assert [record.message for record in caplog.records] == [
        "mode is 'observe': nothing will be stopped, although stops were given"
    ]


@pytest.mark.parametrize(
    ("stops", "got"), [(("gate", "vet"), r"\('gate', 'vet'\)"), ("gate", "'gate'"), (5, "5")]
)
def test_a_stop_that_does_not_exist_is_named(stops: Any, got: str) -> None:
    with pytest.raises(
        PolicyError,
        match=rf"abort: expected a tuple of any of 'integration', .*'cancel', got {got}$",
    ):
        LoopGuardSpanProcessor(abort=stops)


def test_an_exception_that_does_not_exist_is_named() -> None:
    expected: Any = RunInterrupted  # it is named, not given
    with pytest.raises(PolicyError, match=r"^abort_exception: expected 'ordinary' or 'base', got "):
        LoopGuardSpanProcessor(abort_exception=expected)


def test_the_exception_from_code_comes_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_LOOPGUARD_ABORT_EXCEPTION", "base")

    raised = [
        LoopGuardSpanProcessor(abort_exception=given)._refusal  # pyright: ignore[reportPrivateUsage]
        for given in (None, "base", "ordinary")
    ]
    assert raised == [RunInterrupted, RunInterrupted, RunAborted]
    monkeypatch.delenv("OTEL_LOOPGUARD_ABORT_EXCEPTION")
    assert LoopGuardSpanProcessor()._refusal is RunAborted  # pyright: ignore[reportPrivateUsage]


def test_stops_may_come_one_by_one() -> None:
    stops: Any = (name for name in ("gate", "cancel"))

    assert checked(stops) == {"gate", "cancel"}


@pytest.mark.parametrize("seconds", [0, -1, True, "2", math.inf, math.nan, 1e300, 10**400])
def test_a_time_that_no_thread_can_wait_is_refused(seconds: Any) -> None:
    with pytest.raises(PolicyError, match=r"^hook_timeout_s: expected a number of seconds above 0"):
        LoopGuardSpanProcessor(hook_timeout_s=seconds)


def test_an_error_in_a_text_keeps_its_path_and_its_line() -> None:
    with pytest.raises(PolicyError) as option:
        Policy.from_toml("[limits]\nmax_steps = true", source="p.toml")
    with pytest.raises(PolicyError) as text:
        Policy.from_toml("[limits]\nmax_steps =", source="p.toml")

    assert (option.value.path, option.value.line) == ("limits.max_steps", None)
    assert (text.value.path, text.value.line) == ("", 2)
