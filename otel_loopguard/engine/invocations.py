"""The invocations of agents in a run: which is inside which, and the limits held against each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from otel_loopguard.detectors import APART
from otel_loopguard.engine.agent_rules import INNER
from otel_loopguard.engine.rule_kits import RulesByKind, arranged, made
from otel_loopguard.settings import Limits, Settings
from otel_loopguard.steps import Step

INVOCATIONS = 128
"""Invocations that a run knows at a time; past that the oldest is forgotten."""

DEEPEST = 64
"""Levels of agents inside agents that are followed upwards."""


class Invocation:
    """One invocation of an agent, and the limits that are held against it."""

    __slots__ = (
        "agent",
        "began_s",
        "calm",
        "depth",
        "has_ended",
        "id",
        "is_open",
        "own",
        "parent_id",
        "whole",
    )

    def __init__(self, step: Step, key: str, depth: int, began_s: float) -> None:
        self.id = key
        self.parent_id = step.agent_parent_id
        self.agent = step.agent
        self.depth = depth
        self.began_s = began_s
        """Seconds since the run started."""
        self.is_open = False
        """Its start was seen, and its end was not."""
        self.has_ended = False
        """Both were seen."""
        self.own: RulesByKind = {}
        """Limits on its own steps alone (`scope = "agent"`)."""
        self.whole: RulesByKind = {}
        """Limits on its steps and those of all agents below it (`[agents.x.limits]`)."""
        self.calm: RulesByKind = {}
        """Those of them that are about no repetition: for tool calls that may be repeated."""


class Invocations:
    """The invocations of one run. A step whose invocation has no id belongs to its agent's name."""

    __slots__ = ("_apart", "_by_id", "_first", "_settings", "watched")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_id: dict[str, Invocation] = {}
        self._first: dict[str, str] = {}
        """For each agent, the invocation that has the agent's counters to itself."""
        self._apart: dict[str, None] = {}
        """The invocations that began while that one was open: they have counters of their own."""
        self.watched = settings.scope == "agent" or any(
            options.limits is not None for options in settings.agents.values()
        )
        """Whether any limit is held against single invocations."""

    def counters_of(self, step: Step) -> str:
        """Return whose counters a step advances: those of its agent, by name.

        Invocations of one agent that overlap in time have counters of their own, and so have the
        steps of runs inside the run.
        """
        if step.inner:
            return INNER
        first = self._first.get(step.agent)
        known = None if first in (None, step.agent_id) else self._by_id.get(first or "")
        overlaps = known is not None and known.is_open and step.kind == "agent"
        if overlaps or step.agent_id in self._apart:
            return f"{step.agent}{APART}{step.agent_id}"
        return step.agent

    def depth_of(self, step: Step) -> int:
        """Return how deep an agent that starts is inside others, from 1."""
        parent = self._known(step.agent_parent_id)
        return 1 if parent is None else parent.depth + 1

    def around(self, step: Step, elapsed_s: float) -> tuple[Invocation, ...]:
        """Return the invocations that a step belongs to, its own first. Changes nothing."""
        found = [self._of(step, elapsed_s)]
        while len(found) < DEEPEST:
            above = self._known(found[-1].parent_id)
            if above is None or above in found:
                break
            found.append(above)
        return tuple(found)

    def keep(self, within: tuple[Invocation, ...]) -> None:
        """Know these invocations from now on."""
        for invocation in within:
            known = self._by_id.get(invocation.id)
            if known is None or known.has_ended:
                self._by_id[invocation.id] = invocation
                _bound(self._by_id)

    def begin(self, invocation: Invocation, counters: str) -> None:
        """Take note that an invocation starts, and whose counters it has."""
        invocation.is_open = True
        if counters == invocation.agent:
            self._first[invocation.agent] = invocation.id
            _bound(self._first)
        else:
            self._apart[invocation.id] = None
            _bound(self._apart)

    def end(self, invocation: Invocation) -> None:
        """Take note that an invocation has ended."""
        invocation.is_open, invocation.has_ended = False, True
        self._apart.pop(invocation.id, None)
        if self._first.get(invocation.agent) == invocation.id:
            del self._first[invocation.agent]

    def due_s(self, last_s: float) -> Iterator[float]:
        """Yield when limits on time are reached if nothing happens after `last_s`.

        In seconds of the run, as `last_s` is.
        """
        of_each = self._settings.limits if self._settings.scope == "agent" else Limits()
        for invocation in self.open_ones():
            options = self._settings.of_agent(invocation.agent)
            limits = (None if options is None else options.limits) or Limits()
            for limit_s in (of_each.max_duration_s, limits.max_duration_s):
                if limit_s is not None:
                    yield invocation.began_s + limit_s
            if limits.max_idle_s is not None:
                yield last_s + limits.max_idle_s

    def open_ones(self) -> Iterator[Invocation]:
        """Yield the invocations that have started and not ended."""
        return (known for known in tuple(self._by_id.values()) if known.is_open)

    def _known(self, key: str | None) -> Invocation | None:
        return None if key is None else self._by_id.get(key)

    def _of(self, step: Step, elapsed_s: float) -> Invocation:
        key = step.agent_id or step.agent
        known = self._by_id.get(key)
        if known is not None and not (known.has_ended and step.kind == "agent"):
            return known
        made_for = Invocation(step, key, self.depth_of(step), elapsed_s)
        if self._settings.scope == "agent":
            made_for.own = arranged(made(self._settings, "totals"))
        options = self._settings.of_agent(step.agent)
        if options is not None and options.limits is not None:
            alone = self._settings._replace(limits=options.limits, rules={}, agents={})
            limits = {**made(alone, "totals"), **made(alone, "run")}
            made_for.calm = arranged(limits)
            made_for.whole = arranged({**limits, **made(alone, "agent")})
        return made_for


def _bound(store: dict[str, Any]) -> None:
    if len(store) > INVOCATIONS:
        del store[next(iter(store))]
