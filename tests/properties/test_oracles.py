"""The engine says of every step of every run what the definitions say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.detectors import _base
from otel_loopguard.engine import memory, rule_sets, sight
from otel_loopguard.engine.reports import Reports
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from tests._examples import examples
from tests.properties import strategies
from tests.properties.oracles import LONGEST_CYCLE, Recording, Said, Timed, is_recorded, said_of


def engine(
    word: Iterable[Timed], policy: Policy, recording: Recording, *, commits: bool
) -> Iterator[Said]:
    now_s = 0
    guard = LoopGuard(policy, clock=lambda: now_s)
    for step, pause_s, took_s, late in word:
        now_s += pause_s
        arguments = UNKNOWN if late else step.arguments
        decision = guard.check(msgspec.structs.replace(step, arguments=arguments), commit=commits)
        yield heard(decision)
        if (decision.allowed or commits) and is_recorded(step, recording):
            now_s += took_s
            yield heard(guard.record(step))


def heard(decision: Decision) -> Said:
    assert decision.allowed == (decision.rule is None)
    news = tuple((v.rule, v.action, v.count) for v in decision.violations)
    return Said(decision.rule, news)


recordings: st.SearchStrategy[Recording] = st.sampled_from(["all", "all", "turns", "nothing"])


@examples(300)
@given(strategies.words, strategies.defined_policies, recordings, st.booleans())
def test_the_engine_says_what_the_definitions_say(
    word: list[Timed],
    policy: Policy,
    recording: Recording,
    commits: bool,  # noqa: FBT001 -- hypothesis draws it
):
    assert list(engine(word, policy, recording, commits=commits)) == list(
        said_of(word, policy, recording, commits=commits)
    )


def every_count(rules: Iterable[str]) -> Policy:
    """Return the policy by which these rules tell what they count, each time."""
    lines = {rule: {"warn": 1, "abort": 0} for rule in rules}
    return Policy.from_mapping({"rules": lines}, base=Policy.none())


BY_AGENT = [r for r in strategies.DEFINED if r not in ("repeated_error", "repeated_output")]
"""The rules whose definitions tell what they do where agents and counts are forgotten early."""
BY_NOVELTY = ["cyclic_calls", "no_novelty", "revisited_results"]
"""Those that tell what they do where outcomes are."""

HORIZONS: dict[str, list[tuple[object, str, int]]] = {
    "as it is": [],
    "few agents and counts": [
        (rule_sets, "AGENTS", 2),
        (_base, "REMEMBERED", 2),
        (sight, "WAITING", 2),
    ],
    "few outcomes": [
        (memory, "SEEN", LONGEST_CYCLE + 1),  # what is new is in no cycle
        (memory, "_COMPACTED", 2),
    ],
}

EVERY_ROW = Policy.none().with_limits(
    max_consecutive_errors=1,
    max_turns_without_tool=1,
    max_repeated_calls=1,
    max_same_tool_calls=1,
    loop_pattern_window=4,
    max_output_tokens=1,
    max_cost_usd=0.2,
)
"""The policy whose limits tell what they count from the second on, each time."""


def report_nothing(_: Reports, __: Iterable[Violation]) -> None:
    """Let each violation be news each time."""


@pytest.mark.parametrize(
    ("policy", "horizon"),
    [
        pytest.param(every_count(strategies.DEFINED), "as it is", id="rules"),
        pytest.param(every_count(BY_AGENT), "few agents and counts", id="rules that forget counts"),
        pytest.param(every_count(BY_NOVELTY), "few outcomes", id="rules that forget outcomes"),
        pytest.param(EVERY_ROW, "as it is", id="limits"),
    ],
)
@examples(300)
@given(word=strategies.repetitive_words, recording=recordings)
def test_every_count_of_a_rule_is_what_its_definition_says(
    policy: Policy, horizon: str, word: list[Timed], recording: Recording
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reports, "note", report_nothing)
        for module, name, value in HORIZONS[horizon]:
            patch.setattr(module, name, value)
        assert list(engine(word, policy, recording, commits=True)) == list(
            said_of(word, policy, recording, commits=True, reports_once=False)
        )
