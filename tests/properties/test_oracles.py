"""The engine says of every step of every run what the definitions say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_loopguard import rule_sets, run_state
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Decision, Violation
from otel_loopguard.detectors import DEFAULT_RULES, _base
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.run_state import RunState
from tests.properties import strategies
from tests.properties.oracles import Recording, Said, Timed, is_recorded, said_of


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


@settings(max_examples=300)
@given(strategies.words, strategies.policies, recordings, st.booleans())
def test_the_engine_says_what_the_definitions_say(
    word: list[Timed],
    policy: Policy,
    recording: Recording,
    commits: bool,  # noqa: FBT001 -- hypothesis draws it
):
    assert list(engine(word, policy, recording, commits=commits)) == list(
        said_of(word, policy, recording, commits=commits)
    )


EVERY_COUNT = Policy.from_mapping(
    {"rules": {rule: {"warn": 1, "abort": 0} for rule in DEFAULT_RULES}}, base=Policy.none()
)


def report_nothing(_: RunState, __: Iterable[Violation]) -> None:
    """Let each violation be news each time."""


@pytest.mark.parametrize("horizon", ["as it is", "short"])
@settings(max_examples=300)
@given(word=strategies.repetitive_words, recording=recordings)
def test_every_count_of_a_rule_is_what_its_definition_says(
    horizon: str, word: list[Timed], recording: Recording
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunState, "note", report_nothing)
        if horizon == "short":
            patch.setattr(run_state, "SEEN", 3)
            patch.setattr(run_state, "_COMPACTED", 2)
            patch.setattr(run_state, "WAITING", 2)
            patch.setattr(rule_sets, "AGENTS", 2)
            patch.setattr(_base, "REMEMBERED", 2)
        assert list(engine(word, EVERY_COUNT, recording, commits=True)) == list(
            said_of(word, EVERY_COUNT, recording, commits=True, reports_once=False)
        )
