"""Steps that have started and have not come back: a bounded store that finds them again."""

from __future__ import annotations

import msgspec

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.steps import SpanKey, Step

MOST = 128
"""Open steps kept per run; past that the oldest is forgotten."""


class OpenStep(msgspec.Struct):
    """A step that was checked and waits to be recorded."""

    step: Step
    number: int
    call: int | None
    """Identity of name and arguments, `None` while the arguments are unknown."""
    refused: bool = False
    settled: bool = False
    """Its result has been taken as unknown, because nobody records results here."""


class OpenSteps:
    """The open steps of one run, oldest first."""

    __slots__ = ("_by_call_id", "_by_span", "_steps", "evicted")

    def __init__(self) -> None:
        self._steps: dict[int, OpenStep] = {}
        self._by_span: dict[SpanKey, OpenStep] = {}
        self._by_call_id: dict[str, OpenStep] = {}
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, opened: OpenStep) -> None:
        """Keep an open step."""
        self._steps[id(opened)] = opened
        if opened.step.span is not None:
            self._by_span[opened.step.span] = opened
        if opened.step.call_id is not None:
            self._by_call_id[opened.step.call_id] = opened
        if len(self._steps) > MOST:
            self.remove(next(iter(self._steps.values())))
            self.evicted += 1

    def find(self, step: Step) -> OpenStep | None:
        """Return the open step that `step` completes.

        That is the one with the same span, else with the same call id, else the oldest of the same
        kind, name and arguments.
        """
        found = None
        if step.span is not None:
            found = self._by_span.get(step.span)
        if found is None and step.call_id is not None:
            found = self._by_call_id.get(step.call_id)
        if found is None:
            found = next((o for o in self._steps.values() if _may_complete(o.step, step)), None)
        return found

    def newest(self) -> OpenStep | None:
        """Return the step that was opened last."""
        return next(reversed(self._steps.values()), None)

    def call_ids(self) -> tuple[str, ...]:
        """Return the call ids that wait for a result, oldest first."""
        return tuple(self._by_call_id)

    def remove(self, opened: OpenStep) -> None:
        """Forget an open step; one that is not here is no error."""
        if self._steps.pop(id(opened), None) is None:
            return
        step = opened.step
        if step.span is not None and self._by_span.get(step.span) is opened:
            del self._by_span[step.span]
        if step.call_id is not None and self._by_call_id.get(step.call_id) is opened:
            del self._by_call_id[step.call_id]


def _may_complete(opened: Step, step: Step) -> bool:
    if opened.kind != step.kind or opened.name != step.name:
        return False
    if opened.span is not None or step.span is not None:
        return False
    if opened.call_id is not None and step.call_id is not None:
        return False
    if opened.arguments is UNKNOWN or step.arguments is UNKNOWN:
        return True
    return _same(opened.arguments, step.arguments)


def _same(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 -- a foreign __eq__ may do anything
        return False
