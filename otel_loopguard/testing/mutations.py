"""Changes of the guard, one at a time, for a test process that is to notice them.

Nothing here acts by itself: the pytest plugin asks for a change that is named in the variable
`LOOPGUARD_MUTATION_CHECK`, which nothing else reads. It also has the process say which limits and
rules its tests have reached, which tests failed, and how many ran.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from otel_loopguard.decisions import Decision
from otel_loopguard.detectors import DETECTORS, Facts, Finding
from otel_loopguard.guard import LoopGuard
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.processor import LoopGuardSpanProcessor
from otel_loopguard.settings import Limits, Settings, Thresholds

VARIABLE: Final = "LOOPGUARD_MUTATION_CHECK"
"""Not `OTEL_LOOPGUARD_*`: every guard refuses such a variable that is none of its own."""

Kind: TypeAlias = Literal["later", "earlier", "flipped", "never_stops", "only_observes"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the guard; `rule` is "" where it is one of the whole."""

    kind: Kind
    rule: str = ""

    def __str__(self) -> str:
        """Say what the guard does with it."""
        return _SAID[self.kind].format(self.rule)


_SAID: Final[dict[Kind, str]] = {
    "later": "{} strikes later",
    "earlier": "{} strikes earlier",
    "flipped": "{} strikes while all is well",
    "never_stops": "the guard warns and never stops",
    "only_observes": "the guard sees and does not act",
}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the variable says, as JSON."""

    report: str
    """The file to which the process adds a line when its session ends."""
    change: Change | None = None


class Heard(msgspec.Struct, kw_only=True):
    """What a test process says when its session ends, as a line of JSON."""

    ran: int = 0
    failed: list[str] = []
    limits: list[str] = []
    """The rules of the limits that a guard was made with."""
    tripped: list[str] = []
    """The rules that said stop."""


_SHARES: Final = frozenset(
    (
        *("max_duration_s", "max_idle_s", "max_cost_usd", "max_input_tokens"),
        *("max_output_tokens", "max_total_tokens", "max_context_tokens"),
    )
)
"""Limits that are no counts of steps: they are moved by half of what they are."""
_EXTRA_LIMITS: Final = {
    "token_budget": ("max_input_tokens", "max_output_tokens"),
    "tool_call_budget": ("max_calls_per_tool",),
}
"""Options of a rule beside that of `LIMIT_OF_RULE`."""
_DECIDING: Final = ("check", "record", "preview", "learn", "tick")

_Check: TypeAlias = Callable[[Any, Facts], Finding | None]


def watch(heard: Heard) -> None:
    """Have `heard` filled with the limits that guards are made with, and the rules that trip."""
    for detector in DETECTORS:
        _wrap_of(detector, lambda settings: settings, heard)
        _wrap_check(detector, lambda found: found, heard)


def apply(change: Change) -> None:
    """Change the guards that this process makes from now on. It cannot be undone."""
    if change.kind == "only_observes":
        _only_observe()
    for detector in DETECTORS:
        if change.kind == "never_stops":
            _wrap_check(detector, _warning)
        elif change.rule == detector.rule and change.kind == "flipped":
            _wrap_check(detector, _flipped)
        elif change.rule == detector.rule and change.kind in {"later", "earlier"}:
            by = 1 if change.kind == "later" else -1
            _wrap_of(detector, partial(_moved, rule=change.rule, by=by))


def _wrap_of(
    detector: Any, changed: Callable[[Settings], Settings], heard: Heard | None = None
) -> None:
    made_by = detector.of.__func__

    def of(cls: Any, settings: Settings, /, *rest: Any, **more: Any) -> object:
        made = made_by(cls, changed(settings), *rest, **more)
        if heard is not None and made is not None and cls.rule in LIMIT_OF_RULE:
            _note(heard.limits, cls.rule)
        return cast("object", made)

    detector.of = classmethod(of)


def _wrap_check(
    detector: Any,
    changed: Callable[[Finding | None], Finding | None],
    heard: Heard | None = None,
) -> None:
    asked: _Check = detector.check

    def check(self: Any, facts: Facts, /) -> Finding | None:
        found = changed(asked(self, facts))
        if heard is not None and found is not None and found.action == "abort":
            _note(heard.tripped, detector.rule)
        return found

    detector.check = check


def _note(rules: list[str], rule: str) -> None:
    if rule not in rules:
        rules.append(rule)


def _warning(found: Finding | None) -> Finding | None:
    return None if found is None else msgspec.structs.replace(found, action="warn")


def _flipped(found: Finding | None) -> Finding | None:
    if found is not None and found.action == "abort":
        return None
    return Finding("abort", 0, 0)


def _moved(settings: Settings, rule: str, by: int) -> Settings:
    """Return settings whose limit or threshold of one rule is one more or less."""
    limits = _moved_limits(settings.limits, rule, by)
    line = settings.rules.get(rule)
    if line is None or line.abort is None:
        return settings._replace(limits=limits)
    abort = max(line.abort + by, 1)
    warn = None if line.warn is None else min(line.warn, abort)
    rules = {**settings.rules, rule: Thresholds(warn=warn, abort=abort)}
    return settings._replace(limits=limits, rules=rules)


def _moved_limits(limits: Limits, rule: str, by: int) -> Limits:
    moved: dict[str, Any] = {}
    for name in (LIMIT_OF_RULE.get(rule, ""), *_EXTRA_LIMITS.get(rule, ())):
        value: Any = getattr(limits, name, None)
        if isinstance(value, (int, float)):
            moved[name] = value * (1 + by / 2) if name in _SHARES else max(value + by, 0)
        elif value:
            moved[name] = {tool: max(limit + by, 0) for tool, limit in value.items()}
    return msgspec.structs.replace(limits, **moved) if moved else limits


def _only_observe() -> None:
    """Let guards that a loop asks allow all, and processors act on nothing."""
    guard: Any = LoopGuard
    for name in _DECIDING:
        setattr(guard, name, _allowing(getattr(guard, name)))
    processor: Any = LoopGuardSpanProcessor
    made = processor.__init__

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **{**options, "mode": "observe"})

    processor.__init__ = init


def _allowing(decide: Callable[..., Decision]) -> Callable[..., Decision]:
    def decided(self: LoopGuard, *arguments: Any, **options: Any) -> Decision:
        decision = decide(self, *arguments, **options)
        if decision.allowed or not self.is_asked_by_loop:
            return decision
        return msgspec.structs.replace(decision, allowed=True, refusal=None)

    return decided
