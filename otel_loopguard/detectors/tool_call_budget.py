"""More tool calls than the run was given, in all or of one tool."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, over
from otel_loopguard.settings import Settings
from otel_loopguard.steps import StepKind


class ToolCallBudget:
    """More tool calls than the run was given, in all or of one tool.

    What it sees
        Every attempted tool call of the run, retries and those of sub-agents included, against
        `max_tool_calls` and, by the tool's name, against `max_calls_per_tool`.
    Why it matters
        A tool that sends, writes or costs must not be called without end, however varied the calls.
    What it does not see
        What the calls are for.
    """

    rule: ClassVar[str] = "tool_call_budget"
    reason: ClassVar[str] = "MAX_TOOL_CALLS_EXCEEDED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "totals"
    foresees: ClassVar[bool] = False
    moment: Moment = "start"
    on_news: bool = True
    rests: bool = True

    __slots__ = ("_by_tool", "_calls", "_limit", "_limits_by_tool")

    def __init__(
        self,
        limit: int | None,
        limits_by_tool: Mapping[str, int],
        calls: int = 0,
        by_tool: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._limit = limit
        self._limits_by_tool = limits_by_tool
        self._calls = calls
        self._by_tool = {name: by_tool.get(name, 0) for name in limits_by_tool}

    @classmethod
    def of(
        cls,
        settings: Settings,
        /,
        calls: int = 0,
        calls_by_tool: Mapping[str, int] = MappingProxyType({}),
    ) -> ToolCallBudget | None:
        """Make it if `max_tool_calls` or `max_calls_per_tool` is set."""
        limit, by_tool = settings.limits.max_tool_calls, settings.limits.max_calls_per_tool
        is_set = limit is not None or by_tool
        return cls(limit, by_tool, calls, calls_by_tool) if is_set else None

    def under(self, settings: Settings, /) -> ToolCallBudget | None:
        """Return one with other limits that goes on from what this one has counted."""
        return self.of(settings, self._calls, self._by_tool)

    def check(self, facts: Facts, /) -> Finding | None:
        """Count this call in all, then among those of its tool."""
        return over(self._calls + 1, self._limit) or over(
            self._by_tool.get(facts.name, 0) + 1, self._limits_by_tool.get(facts.name)
        )

    def commit(self, facts: Facts, /) -> None:
        """Count the call."""
        self._calls += 1
        if facts.name in self._by_tool:
            self._by_tool[facts.name] += 1
