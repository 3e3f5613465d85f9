"""The detectors that settings ask for, made and arranged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from otel_loopguard.detectors import DETECTORS, RULES, Continued, Detector, Reach
from otel_loopguard.engine.rule_plans import RuleSet
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind

KINDS: tuple[StepKind, ...] = ("llm", "tool", "agent", "custom")

RulesByKind: TypeAlias = dict[StepKind, RuleSet]
Detectors: TypeAlias = Mapping[str, Detector]
"""Detectors by their rule."""


def made(settings: Settings, reach: Reach) -> Detectors:
    """Return the detectors of this reach that the settings ask for."""
    every = (kind.of(settings) for kind in DETECTORS if kind.reach == reach)
    return {detector.rule: detector for detector in every if detector is not None}


def continued(settings: Settings, counted: Detectors) -> Detectors:
    """Return the totals that the settings ask for, going on from what was counted before."""
    known = (each.under(settings) for each in counted.values() if isinstance(each, Continued))
    going_on = {each.rule: each for each in known if each is not None}
    return {**made(settings, "totals"), **going_on}


def ordered(detectors: Detectors) -> tuple[Detector, ...]:
    """Return detectors in the order of the table."""
    return tuple(detectors[kind.rule] for kind in DETECTORS if kind.rule in detectors)


def arranged(detectors: Detectors) -> RulesByKind:
    """Return detectors by the kind of step that they look at."""
    every = ordered(detectors)
    return {kind: RuleSet(every, kind) for kind in KINDS}


def afresh(detectors: Detectors, new: Detectors) -> Detectors:
    """Return the detectors with those renewed that count results of tool calls."""
    return {
        rule: new[rule] if rule in new and _counts_results(detector) else detector
        for rule, detector in detectors.items()
    }


def _counts_results(detector: Detector) -> bool:
    return detector.moment == "result" and "tool" in detector.kinds and detector.rule in RULES
