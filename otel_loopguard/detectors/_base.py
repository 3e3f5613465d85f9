"""What a detector is asked, what it answers, and how it is made.

A detector keeps bounded counters. `check` reads them and says what would be found if the step
happened; `commit` advances them by a step that did happen. Both take constant time in the length of
the run, and no detector looks at another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind

Key = TypeVar("Key")
Value = TypeVar("Value")

Action: TypeAlias = Literal["warn", "abort"]
Moment: TypeAlias = Literal["start", "call", "result"]
"""When a detector advances: as soon as the step is recognised, once its arguments are known (or are
not going to be), or once its result is recorded."""

Reach: TypeAlias = Literal["totals", "run", "agent"]
"""What has counters of its own: the policy's `scope`, the whole run, or each agent of it."""

APART = "\0"
"""What stands between the name of an agent and one of its invocations that has its own counters."""

REMEMBERED = 32
"""Different steps that a counting detector keeps counts for; the least recent one goes first."""

COUNTED: frozenset[StepKind] = frozenset(("llm", "tool", "custom"))
"""The kinds that get a step number. A sub-agent is no step of its own: its steps are."""


class Turn(msgspec.Struct, frozen=True, gc=False):
    """What a model turn brought, as far as it is known."""

    output: int | None = None
    """Identity of its text and the calls that it asked for; `None` where neither is known."""
    cut: bool = False
    """The token limit ended it."""
    final: bool = False
    """It is known to have finished the run."""
    asks: bool = False
    """It asked for tools."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What is known about one step when a detector is asked about it."""

    kind: StepKind
    name: str
    agent: str
    """Whose counters advance: the agent by name, and the invocation where several overlap."""
    elapsed_s: float
    """Seconds since the run started."""
    call: int | None
    """Identity of agent, name and arguments; `None` where the arguments are unknown."""
    outcome: int | None = None
    """Identity of call and result; `None` where either is unknown."""
    pending: bool = True
    """The step has not been recorded: its result is not known *yet*."""
    failed: bool = False
    novel: bool = False
    """This agent has not had this outcome (this call, where the result is unknown) before."""
    since: int | None = None
    """For an outcome that the agent has had before: how many new ones it has had since then."""
    batch: int | None = None
    """Which response of the model asked for the call; `None` where nobody can tell."""
    index: int = 0
    """How many tool calls of this agent came back before."""
    news: int | None = None
    """The outcome (the call, where its result is unknown) that was the agent's last success with
    something new."""
    history: Sequence[int | None] = ()
    """The agent's last calls before this one, oldest first, at the moment of asking."""
    before: int | None = None
    """The call of this tool that came back last."""
    unchanged: bool = False
    """This tool answered the same the last time."""
    plain: bool = False
    """A success with something new, and nothing else about it that a rule looks at: a detector that
    rests is not told of it, and finds in `index`, `news` and `history` what it has missed."""
    result: int | None = None
    """Identity of agent, tool and result of a call that succeeded; `None` where it is unknown."""
    error: int | None = None
    """Identity of what went wrong: type and message without what changes by nature."""
    nothing: bool = False
    """The answer says that nothing was found."""
    short: bool = False
    """The result is a short text: at most 200 bytes."""
    near: bool = False
    """The arguments are nearly those of the last call of this tool with the same result."""
    familiar: bool = False
    """The call, or one that differs in volatile parts only, is among the agent's recent ones."""
    unknown_tool: bool = False
    """The call failed, and there is no such tool, or its arguments begin like JSON and are none."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    own: Mapping[str, Thresholds] | None = None
    """Thresholds that hold for this tool, by rule, where they are not those of the rule."""
    turn: Turn | None = None
    """For a model call that came back without an error."""
    ahead: int = 0
    """Model calls that have been let through and have not become steps yet."""
    silent_s: float = 0.0
    """Seconds in which nothing had happened in the run before, if it was not finished."""
    depth: int = 0
    """How many agents are inside one another, for the start of an agent."""
    spoken: bool = False
    """A person has said something since the last model call."""
    unsure: bool = False
    """Whether a person has was not known when the model was called, and is known now."""
    number: int = 0
    """The number of the step in its run."""
    started: int = 0
    """How many steps of the run have started up to now."""
    asked: bytes | None = None
    """The canonical text of the arguments if it is not long; only where a rule compares words."""
    answered: bytes | None = None
    """The same of the result."""
    numbered: bool = True
    """The step has a number of its own: a call known from messages has that of its turn."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What a detector found: how bad, how often, and where the line was."""

    action: Action
    count: float
    threshold: float
    wasted_steps: int = 0
    """Steps that did nothing but repeat, the one in question included."""


class Detector(Protocol):
    """One rule's counters."""

    rule: ClassVar[str]
    reason: ClassVar[str]
    kinds: ClassVar[frozenset[StepKind]]
    """The kinds of steps that advance the counters."""
    judges: ClassVar[frozenset[StepKind]]
    """The kinds of steps that the rule can speak about."""
    reach: ClassVar[Reach]
    foresees: ClassVar[bool]
    """Whether the rule can speak before the moment at which it advances."""

    @property
    def moment(self) -> Moment:
        """When the counters advance."""
        ...

    @property
    def on_news(self) -> bool:
        """Whether the rule can speak about a plain success."""
        ...

    @property
    def rests(self) -> bool:
        """Whether a plain success of the agent that acted last would change nothing that counts."""
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


@runtime_checkable
class Continued(Protocol):
    """A detector whose count goes on from one run of a conversation to the next."""

    def under(self, settings: Settings, /) -> Detector | None:
        """Return one with other limits that goes on from what this one has counted.

        `None` if these settings switch it off.
        """
        ...


def judge(
    rule: str, thresholds: Thresholds, facts: Facts, count: float, wasted_steps: int = 0
) -> Finding | None:
    """Say what `count` occurrences mean under the rule's thresholds, or the tool's own."""
    own = thresholds if facts.own is None else facts.own.get(rule, thresholds)
    if own.abort is not None and count >= own.abort:
        return Finding("abort", count, own.abort, wasted_steps)
    if own.warn is not None and count >= own.warn:
        return Finding("warn", count, own.warn, wasted_steps)
    return None


def over(count: float, limit: float | None) -> Finding | None:
    """Say what `count` means for a limit of which the N-th is allowed."""
    return Finding("abort", count, limit) if limit is not None and count > limit else None


def count_up(counts: dict[int, int], key: int) -> None:
    """Add one to `key` and make it the most recent, forgetting the least recent past the bound."""
    counts[key] = counts.pop(key, 0) + 1
    if len(counts) > REMEMBERED:
        del counts[next(iter(counts))]


def keep(store: dict[Key, Value], key: Key, value: Value) -> None:
    """Store a value as the most recent, forgetting the least recent past the bound."""
    store.pop(key, None)
    store[key] = value
    if len(store) > REMEMBERED:
        del store[next(iter(store))]
