"""Steps that have started and have not come back: a bounded store that finds them again."""

from __future__ import annotations

from collections import deque
from itertools import chain

import msgspec

from otel_loopguard.canonical import UNKNOWN, fingerprint
from otel_loopguard.steps import SpanKey, Step, StepKind

NAMED = 128
"""Open steps with a span or a call id kept per run; past that the oldest is forgotten."""

NAMELESS = 32
"""Open steps with neither kept per run; loops that start more at a time give them call ids."""


class OpenStep(msgspec.Struct, eq=False, gc=False):
    """A step that was checked and waits to be recorded."""

    kind: StepKind
    name: str
    agent: str
    approved: bool
    span: SpanKey | None
    call_id: str | None
    number: int
    call: int | None
    """Identity of the call, `None` while the arguments are unknown."""
    refused: bool


class OpenSteps:
    """The open steps of one run.

    The arguments of the newest one are kept, to know it again by them; those of the others are not,
    so that large ones do not pile up.
    """

    __slots__ = ("_arguments", "_by_id", "_named", "_nameless", "_newest", "evicted")

    def __init__(self) -> None:
        self._named: dict[OpenStep, None] = {}
        self._nameless: deque[OpenStep] = deque(maxlen=NAMELESS)
        self._by_id: dict[SpanKey | str, OpenStep] = {}
        self._newest: OpenStep | None = None
        self._arguments: object = UNKNOWN
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._named) + len(self._nameless)

    def add(self, opened: OpenStep, arguments: object) -> None:
        """Keep an open step."""
        self._newest, self._arguments = opened, arguments
        if opened.span is None and opened.call_id is None:
            self.evicted += len(self._nameless) == NAMELESS
            self._nameless.append(opened)
            return
        self._named[opened] = None
        for key in (opened.span, opened.call_id):
            if key is not None:
                self._by_id[key] = opened
        if len(self._named) > NAMED:
            self.remove(next(iter(self._named)))
            self.evicted += 1

    def find(self, step: Step) -> OpenStep | None:
        """Return the open step that `step` completes.

        That is the one with the same span, else with the same call id, else the oldest of the same
        kind, name and arguments, else the oldest of the same kind and name if arguments are
        unknown.
        """
        named = self._named_like(step)
        if named is not None:
            return named
        alike = [o for o in chain(self._nameless, self._named) if _may_complete(o, step)]
        if not alike or step.arguments is UNKNOWN:
            return alike[0] if alike else None
        if self._same_arguments(alike[0], step):
            return alike[0]
        value = fingerprint(step.arguments)
        for opened in alike:
            call = call_of(opened.agent, opened.name, value)
            if call is not None and call == opened.call:
                return opened
            if self._same_arguments(opened, step):
                return opened
        return next((o for o in alike if self._has_no_arguments(o)), None)

    def _named_like(self, step: Step) -> OpenStep | None:
        if step.span is not None and step.span in self._by_id:
            return self._by_id[step.span]
        opened = None if step.call_id is None else self._by_id.get(step.call_id)
        # Some servers give every call the same id.
        same = opened is not None and (opened.kind, opened.name) == (step.kind, step.name)
        return opened if same else None

    def call_ids(self) -> tuple[str, ...]:
        """Return the call ids that wait for a result, oldest first."""
        return tuple(key for key in tuple(self._by_id) if isinstance(key, str))

    def remove(self, opened: OpenStep) -> None:
        """Forget an open step."""
        if self._newest is opened:
            self._newest, self._arguments = None, UNKNOWN
        if opened.span is None and opened.call_id is None:
            self._nameless.remove(opened)
            return
        del self._named[opened]
        for key in (opened.span, opened.call_id):
            if key is not None and self._by_id.get(key) is opened:
                del self._by_id[key]

    def _same_arguments(self, opened: OpenStep, step: Step) -> bool:
        return opened is self._newest and _same(self._arguments, step.arguments)

    def _has_no_arguments(self, opened: OpenStep) -> bool:
        kept = self._arguments if opened is self._newest else UNKNOWN
        return opened.call is None and kept is UNKNOWN


def call_of(agent: str, name: str, arguments: int | None) -> int | None:
    """Return the identity of a call: who calls what, and the fingerprint of the arguments."""
    return None if arguments is None else hash((agent, name, arguments))


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
