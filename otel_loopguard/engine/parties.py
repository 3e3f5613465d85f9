"""The limits that are held against the invocations of agents around a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from otel_loopguard.detectors import Facts
from otel_loopguard.engine.invocations import Invocation
from otel_loopguard.engine.rule_plans import RuleSet
from otel_loopguard.steps import StepKind


class Party(NamedTuple):
    """Limits of an invocation, and the facts about a step as they see them."""

    limits: RuleSet
    facts: Facts
    agent: str


def parties(
    within: tuple[Invocation, ...], kind: StepKind, facts: Facts, *, may_repeat: bool
) -> Iterator[Party]:
    """Yield the limits of the invocations around a step, innermost first, each on its own clock."""
    for position, invocation in enumerate(within):
        elapsed_s = facts.elapsed_s - invocation.began_s
        silent_s = min(facts.silent_s, elapsed_s)
        # What is on its way is known for the run, not for each invocation.
        its_facts = msgspec.structs.replace(facts, elapsed_s=elapsed_s, silent_s=silent_s, ahead=0)
        if invocation.own and position == 0:
            yield Party(invocation.own[kind], its_facts, invocation.agent)
        if invocation.whole:
            limits = invocation.calm if may_repeat else invocation.whole
            yield Party(limits[kind], its_facts, invocation.agent)
