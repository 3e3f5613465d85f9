"""Asking detectors about a step, telling them of it, and making violations of what they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from otel_loopguard.decisions import Phase, Violation
from otel_loopguard.detectors import Detector, Facts, Finding
from otel_loopguard.engine.invocations import Invocation, Invocations
from otel_loopguard.engine.open_steps import OpenStep
from otel_loopguard.engine.parties import parties
from otel_loopguard.steps import StepKind

Heard: TypeAlias = tuple[Detector, Finding, str]
"""Who found what, and which agent it looks at."""

Spent: TypeAlias = Callable[[StepKind, int, "str | None"], tuple[int, float]]
"""Tells the tokens and the dollars that the last so many steps of a kind took, of one agent."""


def heard(detectors: tuple[Detector, ...], facts: Facts, agent: str) -> list[Heard]:
    """Ask detectors about a step, and return what they find."""
    asked = ((detector, detector.check(facts), agent) for detector in detectors)
    return [(detector, finding, agent) for detector, finding, agent in asked if finding is not None]


def heard_around(within: tuple[Invocation, ...], facts: Facts, *, may_repeat: bool) -> list[Heard]:
    """Ask the limits of the invocations around a step before it happens."""
    found: list[Heard] = []
    for limits, its_facts, its_agent in parties(within, facts.kind, facts, may_repeat=may_repeat):
        moment = limits.early_blind if facts.call is None else limits.early
        found += heard(moment, its_facts, its_agent)
    return found


def late_ones(detectors: tuple[Detector, ...]) -> tuple[Detector, ...]:
    """Return those that look at more of a call than that it is made."""
    return tuple([detector for detector in detectors if detector.moment != "start"])


def hear(opened: OpenStep, facts: Facts, *, acts_on: bool) -> list[Heard]:
    """Ask about a step that has come back, let the counters advance, and return what was found.

    `acts_on` says that the last step that came back was of the same agent: then who rests need not
    be told of a plain success.
    """
    rules, late = opened.rules, opened.late
    plain = facts.plain and acts_on
    found: list[Heard] = []
    if late:
        asked = rules.late_news if plain else rules.late
    else:
        asked = rules.at_news if plain else rules.at_result
    for detector in asked:
        finding = detector.check(facts)
        if finding is not None:
            found.append((detector, finding, opened.agent))
    if not plain:
        rules.awake = rules.moving
    for detector in rules.calls if late else ():
        detector.commit(facts)
    for detector in rules.awake:
        detector.commit(facts)
    if plain and rules.awake:
        rules.awake = tuple([d for d in rules.awake if not d.rests])
    return found + _hear_around(opened, facts, late=late) if opened.within else found


def _hear_around(opened: OpenStep, facts: Facts, *, late: bool) -> list[Heard]:
    """Do the same with the limits of the invocations around a step."""
    found: list[Heard] = []
    for limits, its_facts, its_agent in parties(
        opened.within, opened.kind, facts, may_repeat=not opened.rules.compares
    ):
        found += heard(limits.late if late else limits.at_result, its_facts, its_agent)
        for detector in limits.moving_late if late else limits.moving:
            detector.commit(its_facts)
    return found


def placed(facts: Facts, opened: OpenStep, started: int) -> Facts:
    """Add where a step stands, of which `started` have started.

    Failures side by side are no repetition; a call known from messages has no number of its own.
    """
    numbered = not opened.spanless
    if not facts.failed:
        return msgspec.structs.replace(facts, numbered=numbered)
    return msgspec.structs.replace(facts, number=opened.number, started=started, numbered=numbered)


def heard_late(
    opened: OpenStep, elapsed_s: float, silent_s: float, invocations: Invocations
) -> list[Heard]:
    """Ask the limits on time, of the run and of each agent at work, while nothing happens."""
    at_work = Facts(opened.kind, opened.name, opened.agent, elapsed_s, None)
    facts = msgspec.structs.replace(at_work, silent_s=silent_s)
    found = heard(opened.owner.of_kind(opened.kind).timed, facts, opened.agent)
    around = (known for known in opened.within if not known.has_ended)
    for invocation in dict.fromkeys((*around, *invocations.open_ones())):
        for limits, its_facts, its_agent in parties(
            (invocation,), opened.kind, facts, may_repeat=False
        ):
            found += heard(limits.timed, its_facts, its_agent)
    return found


def tell_around(opened: OpenStep, facts: Facts, *, at_once: bool) -> None:
    """Tell the limits of the invocations around a step that it starts.

    `at_once` says that nothing is ever recorded: then it counts as if it had come back.
    """
    for limits, its_facts, _ in parties(
        opened.within, opened.kind, facts, may_repeat=not opened.rules.compares
    ):
        started = limits.at_start if facts.call is None else limits.started
        for detector in limits.early if at_once else started:
            detector.commit(its_facts)


def violations_of(
    found: list[Heard], opened: OpenStep, phase: Phase, spent: Spent, *, forgiven: bool
) -> list[Violation]:
    """Return what was found as violations; `forgiven` is what comes with the end of a run."""
    return [_violation_of(entry, opened, phase, spent, forgiven=forgiven) for entry in found]


def _violation_of(
    entry: Heard, opened: OpenStep, phase: Phase, spent: Spent, *, forgiven: bool
) -> Violation:
    detector, finding, agent = entry
    wasted = finding.wasted_steps
    owner = opened.owner.key if detector.reach == "agent" else None
    tokens, cost_usd = spent(opened.kind, wasted, owner) if wasted else (0, 0.0)
    return Violation(
        rule=detector.rule,
        reason=detector.reason,
        action="warn" if forgiven else finding.action,
        phase=phase,
        step=opened.number,
        count=finding.count,
        threshold=finding.threshold,
        kind=opened.kind,
        tool=opened.name if opened.kind == "tool" else "",
        agent=agent,
        wasted_steps=wasted,
        wasted_tokens=tokens,
        wasted_cost_usd=cost_usd,
        span=opened.span,
    )
