"""What the tool calls of a run have brought: what counts as seen before, and as the same."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from otel_loopguard.values.answers import nearly_equal
from otel_loopguard.values.volatile import Masking

SEEN = 256
"""How many different outcomes a run remembers; what is older counts as new again."""

_AGES = SEEN - 1
"""So much can be new since a remembered outcome: ages are kept as small numbers, which Python does
not store one by one."""

RECENT = 4
"""How many calls are remembered with what they said: what varies by nature is looked for there."""

KEPT = 1_024
"""Bytes of arguments, and of results, that are kept as they are; longer results are masked at once,
longer arguments compare as they are."""

MASKED = 65_536
"""Bytes of a result in which volatile parts are looked for; what follows compares as it is."""

_SPEAKING = 20
"""Bytes of a result that says more than that something was done."""

_COMPACTED = 64
"""A dictionary that loses its oldest key for each new one doubles in size unless it is copied."""


Recalled: TypeAlias = tuple[int, int, bool, bool]
"""What a tool call counts as: its call and outcome; whether its arguments are nearly those of the
last call of the tool with the same result; whether it is among the recent calls."""


class _Recent(msgspec.Struct, gc=False):
    """A recent call with its words."""

    call: int
    outcome: int
    arguments: bytes | None
    result: bytes | int
    """Its text, or the identity of what is left when it is masked."""


class Memory:
    """What the tool calls of one run have brought. Everything in it is bounded."""

    __slots__ = ("_answers", "_calls", "_forgotten", "_masking", "_masks", "_seen")

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._masks = masking.enabled
        self._seen: dict[int, int] = {}
        self._calls: dict[int, _Recent] = {}
        self._answers: dict[int, _Recent] = {}
        self._forgotten = 0

    def has(self, key: int) -> bool:
        """Say whether an outcome, or a call without a known result, was seen before."""
        return key in self._seen

    def since(self, key: int, news: int) -> int | None:
        """Say how many news there were since `key` was seen; `None` if it was not."""
        then = self._seen.get(key)
        return None if then is None else (news - then) & _AGES

    def keep(self, key: int, news: int) -> None:
        """Remember an outcome as the most recent; `news` is how much was new up to now."""
        seen = self._seen
        if key in seen:
            del seen[key]
        elif len(seen) == SEEN:
            del seen[next(iter(seen))]
            self._forgotten += 1
            if self._forgotten % _COMPACTED == 0:
                self._seen = seen = {old: then for old, then in seen.items()}  # noqa: C416 -- `dict` keeps the gaps
        seen[key] = news & _AGES

    def forget(self) -> None:
        """Forget all."""
        self._seen.clear()
        self._calls.clear()
        self._answers.clear()

    def recall(
        self,
        call: int,
        outcome: int,
        answer: int,
        arguments: bytes | None,
        result: bytes,
        world: int,
    ) -> Recalled:
        """Say what a call that succeeded counts as.

        That is itself, or a recent one which differs in volatile parts only: of the result where
        the calls are equal, of the arguments where the results are. `answer` is the identity of
        tool and result, `world` that of the state in which it was called: calls in different
        states are different ones.
        """
        asked, answered = call, answer
        if world:
            asked, answered = hash((call, world)), hash((answer, world))
        before = self._calls.get(asked)
        if outcome in self._seen:
            return call, outcome, False, before is not None
        alike = None if before is not None else self._answers.get(answered)
        if before is not None and self._masks and self._same_but_volatile(before, result):
            _keep(self._calls, asked, before)
            return call, before.outcome, False, True
        near = False
        if alike is not None and alike.arguments is not None and arguments is not None:
            if self._masks and self._same_call_but_volatile(alike.arguments, arguments):
                _keep(self._answers, answered, alike)
                return alike.call, alike.outcome, False, True
            near = len(result) >= _SPEAKING and nearly_equal(alike.arguments, arguments)
        kept = result if len(result) <= KEPT else self._identity(result) if self._masks else 0
        recent = _Recent(call, outcome, arguments, kept)
        calls, answers = self._calls, self._answers
        if before is not None:
            del calls[asked]
        answers.pop(answered, None)
        calls[asked] = answers[answered] = recent
        if len(calls) > RECENT:
            del calls[next(iter(calls))]
        if len(answers) > RECENT:
            del answers[next(iter(answers))]
        return call, outcome, near, before is not None

    def _same_but_volatile(self, before: _Recent, result: bytes) -> bool:
        if isinstance(before.result, bytes):
            before.result = self._identity(before.result)
        return before.result == self._identity(result)

    def _same_call_but_volatile(self, one: bytes, other: bytes) -> bool:
        mask = self._masking.masked_arguments
        return mask(one) == mask(other)

    def _identity(self, result: bytes) -> int:
        masked = self._masking.masked_result(result[:MASKED])
        return hash((masked, result[MASKED:]))


def _keep(store: dict[int, _Recent], key: int, recent: _Recent) -> None:
    """Make one that is kept the most recent."""
    del store[key]
    store[key] = recent
