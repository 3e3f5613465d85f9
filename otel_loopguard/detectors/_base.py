"""What a detector is asked, what it answers, and what it can be told.

A detector keeps bounded counters. `check` reads them and says what would be found if the step
happened; `commit` advances them by a step that did happen. Both take constant time in the length of
the run, and no detector looks at another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from otel_loopguard.steps import StepKind

Action: TypeAlias = Literal["warn", "abort"]
Moment: TypeAlias = Literal["start", "call", "result"]
"""When a detector advances: as soon as the step is recognised, once its arguments are known (or are
not going to be), or once its result is recorded."""

REMEMBERED = 32
"""Different steps that a counting detector keeps counts for; the least recent one goes first."""

COUNTED: frozenset[StepKind] = frozenset(("llm", "tool", "custom"))
"""The kinds that get a step number. A sub-agent is no step of its own: its steps are."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What is known about one step when a detector is asked about it."""

    kind: StepKind
    name: str
    elapsed_s: float
    """Seconds since the run started."""
    call: int | None
    """Identity of name and arguments; `None` where the arguments are unknown."""
    outcome: int | None = None
    """Identity of call and result; `None` where either is unknown."""
    pending: bool = True
    """The step has not been recorded: its result is not known *yet*."""
    failed: bool = False
    novel: bool = False
    """This agent has not had this outcome (this call, where the result is unknown) before."""
    ahead: int = 0
    """Model calls that have been let through and have not become steps yet."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What a detector found: how bad, how often, and where the line was."""

    action: Action
    count: float
    threshold: float
    wasted_steps: int = 0
    """Steps that did nothing but repeat, the one in question included."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The occurrence at which a rule warns and the one at which it aborts; `None` is never."""

    warn: int | None = None
    abort: int | None = None

    @property
    def lowest(self) -> int:
        """The first occurrence at which the rule can speak."""
        return min((n for n in (self.warn, self.abort) if n is not None), default=0)

    def judge(self, count: int, wasted_steps: int) -> Finding | None:
        """Say what `count` occurrences mean."""
        if self.abort is not None and count >= self.abort:
            return Finding("abort", count, self.abort, wasted_steps)
        if self.warn is not None and count >= self.warn:
            return Finding("warn", count, self.warn, wasted_steps)
        return None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a run; `None` is off. Of N the N-th is allowed and the next one is not."""

    max_steps: int | None = None
    max_llm_calls: int | None = None
    max_tool_calls: int | None = None
    max_calls_per_tool: Mapping[str, int] = {}
    max_duration_s: float | None = None
    max_repeated_calls: int | None = None
    compare_arguments: bool = True
    max_same_tool_calls: int | None = None
    loop_pattern_window: int | None = None


class Settings(NamedTuple):
    """All that a detector may be told."""

    limits: Limits
    rules: Mapping[str, Thresholds]


class Detector(Protocol):
    """One rule's counters."""

    rule: ClassVar[str]
    reason: ClassVar[str]
    kinds: ClassVar[frozenset[StepKind]]
    per_agent: ClassVar[bool]
    """Whether each agent of a run has counters of its own."""
    foresees: ClassVar[bool]
    """Whether the rule can speak before the moment at which it advances."""

    @property
    def moment(self) -> Moment:
        """When the counters advance."""
        ...

    @classmethod
    def of(cls, settings: Settings, /) -> Detector | None:
        """Make the detector that the settings ask for; `None` if they switch it off."""
        ...

    def check(self, facts: Facts, /) -> Finding | None:
        """Say what would be found if this step happened. Changes nothing."""
        ...

    def commit(self, facts: Facts, /) -> None:
        """Count a step that happened."""
        ...


def over(count: float, limit: float | None) -> Finding | None:
    """Say what `count` means for a limit of which the N-th is allowed."""
    return Finding("abort", count, limit) if limit is not None and count > limit else None


def count_up(counts: dict[int, int], key: int) -> None:
    """Add one to `key` and make it the most recent, forgetting the least recent past the bound."""
    counts[key] = counts.pop(key, 0) + 1
    if len(counts) > REMEMBERED:
        del counts[next(iter(counts))]
