"""Rules that are not told of every plain success say what they would say if they were."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given

from otel_loopguard.decisions import Violation
from otel_loopguard.detectors import DETECTORS, RULES, Detector, Facts
from otel_loopguard.engine.reports import Reports
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step
from tests.properties import strategies
from tests.properties.oracles import Timed

AT_RESULTS = [
    kind
    for kind in DETECTORS
    if kind.rule in RULES and "tool" in kind.judges and not kind.foresees and kind.rule != "sweep"
]
ALWAYS = {"stagnation": 0.01, "unchanged_result": 2}
"""The lowest warning that a rule takes, where that is not 1."""


def report_nothing(_: Reports, __: Iterable[object]) -> None:
    """Let each violation be news each time."""


@pytest.mark.parametrize("kind", AT_RESULTS, ids=lambda kind: kind.rule)
@given(word=strategies.repetitive_words)
def test_who_is_told_less_says_the_same(kind: type[Detector], word: list[Timed]):
    warn = {"warn": ALWAYS.get(kind.rule, 1), "abort": 0}
    policy = Policy.from_mapping({"rules": {kind.rule: warn}}, base=Policy.none())
    told_of_all: dict[str, Detector] = {}
    expected: list[float] = []

    def hear(facts: Facts) -> None:
        whose = facts.agent if kind.reach == "agent" else ""
        detector = told_of_all.get(whose) or kind.of(policy.settings)
        assert detector is not None
        told_of_all[whose] = detector
        if facts.kind in kind.judges and (finding := detector.check(facts)):
            expected.append(finding.count)
        if facts.kind in kind.kinds:
            detector.commit(facts)

    guard = LoopGuard(policy, on_facts=hear)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reports, "note", report_nothing)
        found = [v.count for timed in word for v in told(guard, timed)]

    assert found == expected


def told(guard: LoopGuard, timed: Timed) -> Iterable[Violation]:
    """Tell a guard of a step that has come back; of a late one without its arguments before."""
    if timed.late:
        begun = Step(kind=timed.step.kind, name=timed.step.name, agent=timed.step.agent)
        assert not guard.check(begun, commit=True).violations
    return guard.record(timed.step).violations
