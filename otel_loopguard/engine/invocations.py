"""The invocations of agents in a run: which is inside which, and the limits held against each."""

from __future__ import annotations

from collections.abc import Iterator

from otel_loopguard.detectors import Reach
from otel_loopguard.engine.rule_kits import RulesByKind, arranged, made
from otel_loopguard.settings import Limits, Settings
from otel_loopguard.steps import Step

INVOCATIONS = 128
"""Invocations that a run knows at a time; past that the oldest is forgotten."""

REACHES: tuple[Reach, ...] = ("totals", "run", "agent")

DEEPEST = 64
"""Levels of agents inside agents that are followed upwards."""


class Invocation:
    """One invocation of an agent, and the limits that are held against it."""

    __slots__ = ("agent", "began_s", "depth", "id", "is_open", "own", "parent_id", "whole")

    def __init__(self, step: Step, key: str, depth: int, began_s: float) -> None:
        self.id = key
        self.parent_id = step.agent_parent_id
        self.agent = step.agent
        self.depth = depth
        self.began_s = began_s
        """Seconds since the run started."""
        self.is_open = False
        """Its start was seen, and its end was not."""
        self.own: RulesByKind = {}
        """Limits on its own steps alone (`scope = "agent"`)."""
        self.whole: RulesByKind = {}
        """Limits on its steps and those of all agents below it (`[agents.x.limits]`)."""


class Invocations:
    """The invocations of one run. A step whose invocation has no id belongs to its agent's name."""

    __slots__ = ("_by_id", "_settings", "watched")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_id: dict[str, Invocation] = {}
        self.watched = settings.scope == "agent" or any(
            options.limits is not None for options in settings.agents.values()
        )
        """Whether any limit is held against single invocations."""

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

    def keep(self, within: tuple[Invocation, ...], *, begins: bool) -> None:
        """Know these invocations from now on; `begins` says that the innermost has just started."""
        within[0].is_open = within[0].is_open or begins
        for invocation in within:
            self._by_id.setdefault(invocation.id, invocation)
            if len(self._by_id) > INVOCATIONS:
                del self._by_id[next(iter(self._by_id))]

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
        if known is not None:
            return known
        made_for = Invocation(step, key, self.depth_of(step), elapsed_s)
        if self._settings.scope == "agent":
            made_for.own = arranged(made(self._settings, "totals"))
        options = self._settings.of_agent(step.agent)
        if options is not None and options.limits is not None:
            alone = self._settings._replace(limits=options.limits, rules={}, agents={})
            limits = (made(alone, reach) for reach in REACHES)
            made_for.whole = arranged({k: d for found in limits for k, d in found.items()})
        return made_for
