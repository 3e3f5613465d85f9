"""What the marker `loopguard` of a test says: which guard it wants, and what is to come of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, cast, get_args

import msgspec

from otel_loopguard.detectors import DETECTORS
from otel_loopguard.environment import read_policy
from otel_loopguard.options.errors import nearest
from otel_loopguard.policy import Policy
from otel_loopguard.settings import Limits
from otel_loopguard.testing.runs_heard import RunHeard

Kind: TypeAlias = Literal["unit", "adapter", "model-evaluation"]
"""What a test tells of: a part alone, a real framework or client before a scripted model, or a real
model."""

KINDS: tuple[Kind, ...] = get_args(Kind)

TIMEOUT_S = 10.0
"""Seconds that a test's models answer, unless its marker says otherwise."""

_OWN = ("policy", "trips", "at", "timeout", "kind", "recording")
_LIMITS = tuple(Limits.__struct_fields__)
_RULES = tuple(detector.rule for detector in DETECTORS)
_EXAMPLE = "@pytest.mark.loopguard(max_llm_calls=5, trips='llm_call_budget', at=11)"


class MarkingError(ValueError):
    """A marker that cannot be followed; the text says what is allowed."""


class Marking(msgspec.Struct, frozen=True, kw_only=True):
    """What one test's markers say together."""

    policy: Policy | None = None
    """That of the guard that the test wants; `None` if it wants none of its own."""
    trips: str | None = None
    """The rule that is to trip; if none is named, no run may trip."""
    at: int | None = None
    """The number of the step at which it is to trip."""
    timeout_s: float | None = TIMEOUT_S
    """When its scripted servers are told to refuse, so that a runaway ends; `None` for never."""
    kind: Kind | None = None
    recording: str | None = None
    """What was recorded, where the test plays that."""

    def fault(self, runs: Iterable[RunHeard]) -> str | None:
        """Say what is wrong with what runs came to; `None` if they tripped as they should."""
        tripped = [(run, run.trip) for run in runs if run.trip is not None]
        came = ", ".join(f"{trip.rule} at step {trip.step}" for _, trip in tripped)
        if self.trips is None:
            return f"no run may trip, and one did: {came}" if came else None
        where = "" if self.at is None else f" at step {self.at}"
        fits = [
            run for run, trip in tripped if trip.rule == self.trips and self.at in (None, trip.step)
        ]
        if not fits:
            return f"{self.trips} is to trip{where}; {came or 'no run tripped'}"
        if any(self._is_heeded(run) for run in fits):
            return None
        return f"{self.trips} tripped{where}, and the run went on: it was not stopped"

    def _is_heeded(self, run: RunHeard) -> bool:
        """Say whether the guard of a run has stopped it; what a loop asks itself is up to it."""
        if run.enforces:
            return run.was_stopped or not run.has_ended
        return run.enforces is None or self.policy is None


def marking_of(
    markers: Iterable[tuple[tuple[object, ...], Mapping[str, object]]],
) -> Marking | None:
    """Return what markers say together, given as their arguments, the nearest first.

    Raises:
        MarkingError: for what no marker takes, and for a value that it does not take.
        PolicyError: for a policy or a limit that cannot be followed.

    """
    said: dict[str, object] = {}
    is_marked = False
    for positional, named in markers:
        is_marked = True
        if positional:
            raise MarkingError(
                f"loopguard({positional[0]!r}): the marker takes named arguments only: {_EXAMPLE}"
            )
        said = {**named, **said}
    if not is_marked:
        return None
    for name in said:
        if name not in (*_OWN, *_LIMITS):
            raise _unknown("argument", name, (*_OWN, *_LIMITS))
    return Marking(
        policy=_policy_of(said),
        trips=_rule_of(said.get("trips")),
        at=_step_of(said.get("at"), said.get("trips")),
        timeout_s=_timeout_of(said.get("timeout", TIMEOUT_S)),
        kind=_kind_of(said.get("kind")),
        recording=_text_of(said.get("recording")),
    )


def _policy_of(said: Mapping[str, object]) -> Policy | None:
    given = said.get("policy")
    limits = {name: value for name, value in said.items() if name in _LIMITS}
    if given is None and not limits:
        return None
    if isinstance(given, (str, os.PathLike)):
        base = read_policy(cast("str | os.PathLike[str]", given))
    elif isinstance(given, Mapping):
        base = Policy.from_mapping(cast("Mapping[str, object]", given))
    else:
        base = Policy.checked(given)
    return Policy.from_mapping({"limits": limits}, base=base) if limits else base


def _rule_of(rule: object) -> str | None:
    if rule is None or (isinstance(rule, str) and rule in _RULES):
        return rule
    raise _unknown("rule for `trips`", rule, _RULES)


def _step_of(step: object, trips: object) -> int | None:
    if step is None:
        return None
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise MarkingError(f"loopguard: at={step!r} is no step; expected its number, from 1")
    if trips is None:
        raise MarkingError(f"loopguard: at={step!r} is the step of which rule? Say trips=")
    return step


def _timeout_of(timeout: object) -> float | None:
    if timeout is None:
        return None
    longest = threading.TIMEOUT_MAX
    if isinstance(timeout, (int, float)) and timeout is not True and 0 < timeout <= longest:
        return timeout
    raise MarkingError(f"loopguard: timeout={timeout!r} is no time; expected seconds, or None")


def _kind_of(kind: object) -> Kind | None:
    if kind is None or kind in KINDS:
        return kind
    raise _unknown("kind", kind, KINDS)


def _text_of(text: object) -> str | None:
    if text is None or isinstance(text, str):
        return text
    raise MarkingError(f"loopguard: recording={text!r} is no name; expected that of a file")


def _unknown(what: str, value: object, allowed: Iterable[str]) -> MarkingError:
    names = tuple(allowed)
    near = nearest(str(value), names)
    guess = f"did you mean {near!r}? " if near else ""
    return MarkingError(
        f"loopguard: there is no {what} {value!r}; {guess}allowed are {', '.join(names)}"
    )
