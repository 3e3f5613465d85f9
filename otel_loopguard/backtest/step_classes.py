"""The classes of `stagnation` that the tool steps of one run fall into."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias, cast

import msgspec

from otel_loopguard.detectors import Facts
from otel_loopguard.detectors.stagnation import Stagnation
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.settings import Thresholds, ToolOptions
from otel_loopguard.values.volatile import Masking

ClassesByAgent: TypeAlias = tuple[tuple[str, ...], ...]
"""The classes of each agent's tool steps, in their order."""


class StepClasses:
    """Collects the classes of the tool steps of a run.

    Steps whose outcome is not known, or is not compared (those of tools that poll or are exempt),
    have none.
    """

    def __init__(self) -> None:
        self._agents: dict[tuple[int, str], tuple[Stagnation, list[str]]] = {}
        self._parts = 0

    def listen(self, policy: Policy) -> LoopGuard:
        """Return a guard for the steps of a part of the run, which begins afresh.

        It compares steps as `policy` does and refuses none: a step that was refused is nothing
        new, and what follows the stop of a run says nothing about the rule.
        """
        self._parts += 1
        return LoopGuard(without_rules(policy), on_facts=partial(self._hear, self._parts))

    def by_agent(self) -> ClassesByAgent:
        """Return the classes so far; an agent of another part is another one."""
        return tuple(tuple(classes) for _, classes in self._agents.values() if classes)

    def _hear(self, part: int, facts: Facts) -> None:
        if facts.kind != "tool":
            return
        known = self._agents.get((part, facts.agent))
        if known is None:
            known = self._agents[part, facts.agent] = Stagnation(Thresholds(), {}), []
        detector, classes = known
        if facts.outcome is not None:
            classes.append(detector.classify(facts))
        detector.commit(facts)


def without_rules(policy: Policy) -> Policy:
    """Return a policy that compares steps as this one does, and has no rule and no limit."""
    settings = policy.settings
    said = {
        "tools": _tools_said(settings.tools),
        "agents": {
            glob: {"tools": _tools_said(options.tools)} for glob, options in settings.agents.items()
        },
        "masking": _said(settings.masking, Masking()),
    }
    return Policy.from_mapping(said, base=Policy.none())


def _tools_said(tools: Mapping[str, ToolOptions]) -> Mapping[str, object]:
    return {
        name: _said(msgspec.structs.replace(options, rules={}), ToolOptions())
        for name, options in tools.items()
    }


def _said(options: msgspec.Struct, unless_said: msgspec.Struct) -> Mapping[str, object]:
    usual = msgspec.structs.asdict(unless_said)
    return {
        name: list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
        for name, value in msgspec.structs.asdict(options).items()
        if value != usual[name]
    }
