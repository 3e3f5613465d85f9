"""Steps that have started and have not come back: a bounded store that finds them again."""

from __future__ import annotations

from itertools import chain, islice

import msgspec

from otel_loopguard.canonical import UNKNOWN, fingerprint
from otel_loopguard.engine.agent_rules import AgentRules
from otel_loopguard.engine.invocations import Invocation
from otel_loopguard.engine.readings import Identity
from otel_loopguard.engine.rule_plans import RuleSet
from otel_loopguard.steps import SpanKey, Step, StepKind

NAMED = 128
"""Open steps with a span or a call id kept per run; past that the oldest is forgotten."""

WORDED = 8
"""Open steps of either kind whose arguments are known by their words; of the others, what they
differ in by nature is not found."""

NAMELESS = 32
"""Open steps with neither kept per run; loops that start more at a time give them call ids."""


class OpenStep(msgspec.Struct, eq=False, gc=False):
    """A step that was checked and waits to be recorded."""

    kind: StepKind
    name: str
    agent: str
    span: SpanKey | None
    call_id: str | None
    number: int
    identity: Identity
    batch: int | None
    owner: AgentRules
    rules: RuleSet
    within: tuple[Invocation, ...]
    """The invocations of agents that it belongs to, where any has limits of its own."""
    late: bool = False
    """Its arguments were not known when it started."""
    holds: bool = False
    """Another agent has been at work since it started: it is a sub-agent's call."""
    refused: bool = False
    spoken: bool = False
    """A person said something before it."""
    unsure: bool = False
    """That was not known when it started."""
    spanless: bool = False
    """The span is that of the turn which asked for it."""
    found_by: SpanKey | None = None
    """What it is found again by, if not by its span."""
    metered: int = 0
    """How many steps had reported what they used when it started; 0 where nobody says which
    invocation it is, and so what is inside it."""

    @property
    def own_span(self) -> SpanKey | None:
        """The span that it is found again by."""
        return None if self.spanless else self.found_by or self.span


class OpenSteps:
    """The open steps of one run.

    The arguments of the newest one are kept, to know it again by them; those of the others are not,
    so that large ones do not pile up.
    """

    __slots__ = (
        "_arguments",
        "_by_id",
        "_named",
        "_nameless",
        "_newest",
        "_not_made",
        "evicted",
        "results_come",
    )

    def __init__(self) -> None:
        self._named: dict[OpenStep, None] = {}
        self._nameless: list[OpenStep] = []
        self._by_id: dict[SpanKey | str, OpenStep] = {}
        self._newest: OpenStep | None = None
        self._arguments: object = UNKNOWN
        self._not_made: list[str] = []
        self.results_come = False
        """Some tool call has come back."""
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._named) + len(self._nameless)

    def add(self, opened: OpenStep, arguments: object) -> None:
        """Keep an open step."""
        self._newest, self._arguments = opened, arguments
        span, call_id = opened.own_span, opened.call_id
        if span is None and call_id is None:
            self._nameless.append(opened)
            if len(self._nameless) > WORDED:
                _forget_words(self._nameless[-WORDED - 1])
            if len(self._nameless) > NAMELESS:
                del self._nameless[0]
                self.evicted += 1
            return
        self._named[opened] = None
        if span is not None:
            self._by_id[span] = opened
        if call_id is not None:
            self._by_id[call_id] = opened
        if len(self._named) > WORDED:
            _forget_words(next(islice(reversed(self._named), WORDED, None)))
        if len(self._named) > NAMED:
            self.remove(next(iter(self._named)))
            self.evicted += 1

    def find(self, step: Step) -> OpenStep | None:
        """Return the open step that `step` completes.

        That is the one with the same span, else with the same call id, else the oldest of the same
        kind, name and arguments, else the oldest of the same kind and name if arguments are
        unknown.
        """
        newest = self._newest
        alone = len(self._nameless) + len(self._named) == 1
        if newest is not None and alone and not step.spanless and self._is_newest(newest, step):
            return newest
        return self._named_like(step) or self._alike(step)

    def _alike(self, step: Step) -> OpenStep | None:
        alike = [o for o in chain(self._nameless, self._named) if _may_complete(o, step)]
        if not alike or step.arguments is UNKNOWN or self._same_arguments(alike[0], step):
            return alike[0] if alike else None
        value = fingerprint(step.arguments)
        for opened in alike:
            if value is not None and value == opened.identity[1]:
                return opened
            if self._same_arguments(opened, step):
                return opened
        return next((o for o in alike if self._has_no_arguments(o)), None)

    def _is_newest(self, newest: OpenStep, step: Step) -> bool:
        """Say whether a step is plainly the newest one: by its span, or by the very arguments."""
        key = newest.found_by or newest.span
        if key is not None or newest.call_id is not None:
            return key is not None and key == (step.found_by or step.span)
        return (
            self._arguments is step.arguments
            and self._arguments is not UNKNOWN
            and step.span is None
            and step.call_id is None
            and newest.name == step.name
            and newest.kind == step.kind
            and newest.agent == step.agent
        )

    def _named_like(self, step: Step) -> OpenStep | None:
        key = step.found_by or step.span
        if key is not None and not step.spanless and key in self._by_id:
            return self._by_id[key]
        opened = None if step.call_id is None else self._by_id.get(step.call_id)
        # Some servers give every call the same id.
        same = opened is not None and (opened.kind, opened.name) == (step.kind, step.name)
        return opened if same else None

    @property
    def holds(self) -> bool:
        """Whether the step that started last, of those that are open, is a sub-agent's call."""
        working = self._working()
        return working is not None and working.holds

    @property
    def is_working(self) -> bool:
        """Whether a tool call is under way; where results never come, that cannot be told."""
        return self.results_come and any(
            opened.kind == "tool" for opened in chain(self._nameless, self._named)
        )

    def hold(self) -> None:
        """Take note that another agent is at work."""
        working = self._working()
        if working is not None and working.kind == "tool":
            working.holds = True

    def _working(self) -> OpenStep | None:
        """Return the open step that started last, agents left out: they work by their steps."""
        for steps in (self._named, self._nameless):
            for each in reversed(steps):
                if each.kind != "agent":
                    return each
        return None

    def latest(self) -> OpenStep | None:
        """Return the open step that started last."""
        newest = self._newest
        if newest is None and self._named:
            newest = next(reversed(self._named))
        return newest or (self._nameless[-1] if self._nameless else None)

    def call_ids(self) -> tuple[str, ...]:
        """Return the call ids that wait for a result, oldest first."""
        waiting = (key for key in tuple(self._by_id) if isinstance(key, str))
        return tuple(dict.fromkeys((*waiting, *self._not_made)))

    def name_call(self, opened: OpenStep, call_id: str | None) -> None:
        """Learn the call id of an open step that started without one."""
        if call_id is not None and opened.call_id is None and opened in self._named:
            opened.call_id = call_id
            self._by_id[call_id] = opened

    def not_made(self, call_id: str | None) -> None:
        """Remember the id of a call that is kept from being made: no result will come."""
        if call_id is not None:
            self._not_made.append(call_id)
            del self._not_made[:-NAMED]

    def remove(self, opened: OpenStep) -> None:
        """Forget an open step."""
        if self._newest is opened:
            self._newest, self._arguments = None, UNKNOWN
        if opened not in self._named:
            self._nameless.remove(opened)
            return
        del self._named[opened]
        for key in (opened.own_span, opened.call_id):
            if key is not None and self._by_id.get(key) is opened:
                del self._by_id[key]

    def _same_arguments(self, opened: OpenStep, step: Step) -> bool:
        return opened is self._newest and _same(self._arguments, step.arguments)

    def _has_no_arguments(self, opened: OpenStep) -> bool:
        kept = self._arguments if opened is self._newest else UNKNOWN
        return opened.identity[1] is None and kept is UNKNOWN


def _forget_words(opened: OpenStep) -> None:
    call, given, _ = opened.identity
    opened.identity = call, given, None


def _may_complete(opened: OpenStep, step: Step) -> bool:
    return (
        opened.kind == step.kind
        and opened.name == step.name
        and (not step.agent or opened.agent == step.agent)
        and (opened.span is None or step.span is None or opened.span == step.span)
        and (opened.call_id is None or step.call_id is None or opened.call_id == step.call_id)
    )


def _same(one: object, other: object) -> bool:
    if one is other:
        return one is not UNKNOWN
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 -- a foreign __eq__ may do anything
        return False
