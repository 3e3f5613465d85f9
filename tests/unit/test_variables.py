"""The variables `OTEL_LOOPGUARD_*`: what each sets, what comes first, what is said of a bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_loopguard import LoopGuardSpanProcessor, Policy, PolicyError
from otel_loopguard.detectors import DEFAULT_RULES
from otel_loopguard.environment import Configuration, read_configuration
from otel_loopguard.options.rules import RULES
from otel_loopguard.options.variables import CONFIG, KNOWN, OF_POLICY, OF_PROCESSOR
from otel_loopguard.settings import Limits, Settings, Thresholds
from otel_loopguard.values.volatile import Masking

SECONDS = "expected a number of seconds above 0, of a million at most"
NUMBER = "expected a whole number of at least 1 (0 switches it off)"
PAIRS = "expected names and values, such as"
RULE = "expected on, off, or thresholds such as warn=3,abort=5"
STOPS = "expected any of integration, gate, veto, cancel with commas between them, or none"
NO_VARIABLE = "there is no such variable"


def read(**variables: str) -> Configuration:
    return read_configuration({f"OTEL_LOOPGUARD_{name}": text for name, text in variables.items()})


def settings(**variables: str) -> Settings:
    return read(**variables).policy.settings


def complaint(**variables: str) -> str:
    with pytest.raises(PolicyError) as raised:
        read(**variables)
    return str(raised.value).replace("OTEL_LOOPGUARD_", "")


def test_without_any_there_is_the_default_policy_and_nothing_else() -> None:
    assert read_configuration({}) == Configuration(policy=Policy())
    assert read_configuration({"PATH": "/bin", "LOOPGUARD_MODE": "x"}).policy == Policy()


def test_every_option_that_has_one_name_has_a_variable() -> None:
    paths = {variable.path for variable in OF_POLICY.values()}

    assert {("limits", name) for name in Limits.__struct_fields__} <= paths
    assert {("rules", rule) for rule in RULES["run"]} <= paths
    assert {("masking", name) for name in Masking.__struct_fields__} <= paths
    assert {("mode",), ("scope",), ("usage", "price"), ("usage", "input_includes_cache")} <= paths
    assert len({*KNOWN}) == len(KNOWN) == len(OF_POLICY) + len(OF_PROCESSOR) + 1


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("MODE", "Enforce", {"mode": "enforce"}),
        ("SCOPE", "conversation", {"scope": "conversation"}),
        ("MAX_STEPS", "20", {"max_steps": 20}),
        ("MAX_STEPS", " 20 ", {"max_steps": 20}),
        ("MAX_COST_USD", "2.50", {"max_cost_usd": 2.5}),
        ("COMPARE_ARGUMENTS", "False", {"compare_arguments": False}),
        (
            "MAX_CALLS_PER_TOOL",
            "send_mail=1, a=b=2,",
            {"max_calls_per_tool": {"send_mail": 1, "a=b": 2}},
        ),
        ("RULES_REPEATED_RESULT", "off", {"rules": {"repeated_result": False}}),
        ("RULES_REPEATED_RESULT", "abort=9", {"rules": {"repeated_result": {"abort": 9}}}),
        ("RULES_CYCLIC_CALLS", "warn=0", {"rules": {"cyclic_calls": {"warn": 0}}}),
        ("RULES_STAGNATION", "warn=7.5", {"rules": {"stagnation": {"warn": 7.5}}}),
        ("RULES_SWEEP", "abort=5,enabled=true", {"rules": {"sweep": {"abort": 5}}}),
        ("USAGE_INPUT_INCLUDES_CACHE", "true", {"usage": {"input_includes_cache": True}}),
        (
            "USAGE_PRICE",
            "input_per_m_usd=1.25,output_per_m_usd=10",
            {"usage": {"price": {"input_per_m_usd": 1.25, "output_per_m_usd": 10}}},
        ),
        ("MASKING_ENABLED", "false", {"masking": {"enabled": False}}),
        ("MASKING_KEYS", "etag, seq", {"masking": {"keys": ["etag", "seq"]}}),
        ("MASKING_PATTERNS", "v[0-9]{1,3}|x", {"masking": {"patterns": ["v[0-9]{1,3}|x"]}}),
    ],
)
def test_a_variable_says_what_code_does(name: str, text: str, same: Any) -> None:
    assert read(**{name: text}).policy == Policy(**same)


@pytest.mark.parametrize("name", sorted(OF_POLICY))
def test_each_takes_what_its_option_takes(name: str) -> None:
    path = OF_POLICY[name].path
    texts: dict[tuple[str, ...], str] = {
        ("mode",): "observe",
        ("scope",): "agent",
        ("steer",): "on",
        ("limits", "max_calls_per_tool"): "a=3",
        ("limits", "compare_arguments"): "false",
        ("usage", "input_includes_cache"): "true",
        ("usage", "price"): "input_per_m_usd=1,output_per_m_usd=2",
        ("masking", "enabled"): "false",
        ("masking", "keys"): "etag",
        ("masking", "patterns"): "x",
    }
    text = texts.get(path, "warn=2,abort=50" if path[0] == "rules" else "17")

    assert read_configuration({name: text}).policy != Policy()
    with pytest.raises(PolicyError, match=rf"^{name}[.:\[]|^{name} "):
        wrong = {"masking": "(", "steer": "{tool.name}"}
        read_configuration({name: wrong.get(path[0], "no such value")})


def test_those_of_the_processor() -> None:
    assert read(HOOK_TIMEOUT_S="0.5").hook_timeout_s == 0.5
    assert read(LOG_EVENTS="false").log_events is False
    assert read(ABORT="Cancel, gate").abort == ("gate", "cancel")
    assert read(ABORT="veto").abort == ("veto",)
    assert read(ABORT="none").abort == ()
    assert read(ABORT_EXCEPTION="Base").abort_exception == "base"


def test_nothing_but_blanks_is_not_set() -> None:
    everything = dict.fromkeys((*KNOWN, "OTEL_LOOPGUARD_NEW"), " \t")

    assert read_configuration(everything) == Configuration(policy=Policy())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("MAX_STEPS", "many", f"MAX_STEPS: {NUMBER}, got 'many'"),
        ("MAX_STEPS", "-1", f"MAX_STEPS: {NUMBER}, got -1"),
        ("MAX_STEPS", "1.5", f"MAX_STEPS: {NUMBER}, got 1.5"),
        ("MAX_CALLS_PER_TOOL", "a=x", f"MAX_CALLS_PER_TOOL.a: {NUMBER}, got 'x'"),
        ("MAX_CALLS_PER_TOOL", "3", f"MAX_CALLS_PER_TOOL: {PAIRS} send_mail=1,search=20, got '3'"),
        (
            "MAX_CALLS_PER_TOOL",
            "a=3,a=4",
            f"MAX_CALLS_PER_TOOL: {PAIRS} send_mail=1,search=20, got 'a=3,a=4'",
        ),
        ("COMPARE_ARGUMENTS", "1", "COMPARE_ARGUMENTS: expected true or false, got '1'"),
        ("MODE", "stop", "MODE: expected 'observe' or 'enforce', got 'stop'"),
        ("RULES_REPEATED_CALL", "3", f"RULES_REPEATED_CALL: {RULE}, got '3'"),
        ("RULES_REPEATED_CALL", "warn=x", f"RULES_REPEATED_CALL.warn: {NUMBER}, got 'x'"),
        (
            "RULES_REPEATED_CALL",
            "warning=3",
            "RULES_REPEATED_CALL.warning: there is no such option here; did you mean 'warn'?",
        ),
        (
            "RULES_SWEEP",
            "on",
            (
                "RULES_SWEEP: expected warn, abort or both, "
                "for this rule has no thresholds of its own, got {'enabled': True}"
            ),
        ),
        (
            "USAGE_PRICE",
            "input_per_m_usd=1",
            (
                "USAGE_PRICE.output_per_m_usd: is missing; "
                "expected US dollars per million tokens, 0 or more"
            ),
        ),
        (
            "MASKING_KEYS",
            "9",
            (
                "MASKING_KEYS[0]: expected a letter, then letters, digits, "
                "'_', '-' and '.', at most 64 in all, got '9'"
            ),
        ),
        ("HOOK_TIMEOUT_S", "0", f"HOOK_TIMEOUT_S: {SECONDS}, got 0"),
        ("HOOK_TIMEOUT_S", "soon", f"HOOK_TIMEOUT_S: {SECONDS}, got 'soon'"),
        ("LOG_EVENTS", "yes", "LOG_EVENTS: expected true or false, got 'yes'"),
        ("ABORT", "gate,integrations", f"ABORT: {STOPS}, got 'gate,integrations'"),
        (
            "ABORT_EXCEPTION",
            "BaseException",
            "ABORT_EXCEPTION: expected 'ordinary' or 'base', got 'baseexception'",
        ),
        ("ABORT", ",", f"ABORT: {STOPS}, got ','"),
        ("MAX_STEP", "3", f"MAX_STEP: {NO_VARIABLE}; did you mean 'MAX_STEPS'?"),
        ("LIMITS_MAX_STEPS", "3", f"LIMITS_MAX_STEPS: {NO_VARIABLE}; did you mean 'MAX_STEPS'?"),
        ("CYCLIC_CALLS", "off", f"CYCLIC_CALLS: {NO_VARIABLE}; did you mean 'RULES_CYCLIC_CALLS'?"),
        (
            "TOOLS",
            "x",
            (
                f"TOOLS: {NO_VARIABLE}; what has no variable of its own is set in the file that "
                "CONFIG names"
            ),
        ),
    ],
)
def test_a_mistake_names_the_variable_its_value_and_what_was_expected(
    name: str, text: str, said: str
) -> None:
    assert complaint(**{name: text}) == said


def test_all_mistakes_are_told_of_at_once(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    said = complaint(MAX_STEPS="x", MAX_COST="3", CONFIG=str(path), ABORT="y").splitlines()

    assert [line.split(":")[0] for line in said] == ["CONFIG", "MAX_STEPS", "MAX_COST", "ABORT"]
    assert said[0].startswith(f"CONFIG: {path}: the policy file cannot be read: ")


class TestWhatComesFirst:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "loopguard.toml"
        path.write_text(
            'mode = "enforce"\nlimits = { max_steps = 5, max_tool_calls = 7 }\n'
            "rules = { cyclic_calls.enabled = false, repeated_result.abort = 9 }\n"
            "tools.t.poll = true\n"
        )
        return path

    def test_a_variable_before_the_file_option_by_option(self, path: Path) -> None:
        said = read(
            CONFIG=str(path),
            MODE="observe",
            MAX_STEPS="20",
            RULES_REPEATED_RESULT="warn=2",
            RULES_CYCLIC_CALLS="on",
        )
        laid = said.policy.settings

        assert (said.mode, said.policy.mode, said.path) == ("observe", "observe", str(path))
        assert laid.limits == Limits(max_steps=20, max_tool_calls=7)
        assert laid.rules["repeated_result"] == Thresholds(warn=2, abort=9)
        assert laid.rules["cyclic_calls"] == DEFAULT_RULES["cyclic_calls"]
        assert laid.tools["t"].poll
        assert read(CONFIG=str(path)).mode == "enforce"
        assert read(CONFIG=str(path), MAX_STEPS="0").policy.settings.limits.max_steps is None

    def test_code_before_both(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CONFIG, str(path))
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_STEPS", "20")
        policy = Policy(max_llm_calls=3)

        assert LoopGuardSpanProcessor().policy.settings.limits.max_steps == 20
        assert LoopGuardSpanProcessor().mode == "enforce"
        assert LoopGuardSpanProcessor(mode="observe").mode == "observe"
        in_code = LoopGuardSpanProcessor(policy)
        assert (in_code.policy, in_code.mode) == (policy, "observe")

    def test_with_a_policy_in_code_the_file_is_not_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(CONFIG, "nowhere.toml")

        assert LoopGuardSpanProcessor(Policy()).policy == Policy()
        with pytest.raises(PolicyError, match=r"^OTEL_LOOPGUARD_CONFIG: nowhere\.toml: "):
            LoopGuardSpanProcessor()

    @pytest.mark.parametrize("policy", [None, Policy()])
    def test_a_mistake_is_told_of_where_the_processor_is_made(
        self, policy: Policy | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_STEPZ", "20")

        with pytest.raises(PolicyError, match=r"did you mean 'OTEL_LOOPGUARD_MAX_STEPS'\?$"):
            LoopGuardSpanProcessor(policy)

    def test_naming_a_stop_is_as_good_as_in_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTEL_LOOPGUARD_ABORT", "gate")

        assert LoopGuardSpanProcessor().mode == "enforce"


def test_the_page_has_every_variable_and_what_it_sets_and_takes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `OTEL_LOOPGUARD_")]
    said = [
        f"| `{name}` | `{variable.option}` | {variable.takes} |"
        for name, variable in {**OF_POLICY, **OF_PROCESSOR}.items()
    ]

    assert rows[0].startswith(f"| `{CONFIG}` |")
    assert rows[1:] == said
