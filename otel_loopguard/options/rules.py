"""The rules of a policy: thresholds, and the weights of `stagnation`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS
from otel_loopguard.detectors import RULES as WITH_THRESHOLDS
from otel_loopguard.detectors._stagnation_classes import WEIGHTS
from otel_loopguard.detectors.stagnation import Stagnation
from otel_loopguard.options.errors import refuse_unknown, wrong
from otel_loopguard.options.kinds import AmountOf, count_of, number_of, switch_of, table_of
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.settings import Limits, Thresholds

Whose: TypeAlias = Literal["run", "agent", "tool"]
"""Whom a table of rules is about."""

STAGNATION = Stagnation.rule
"""The rule that goes by a score, and has weights."""

_DETECTORS = [detector for detector in DETECTORS if detector.rule in WITH_THRESHOLDS]

RULES: Mapping[Whose, tuple[str, ...]] = {
    "run": tuple(d.rule for d in _DETECTORS),
    "agent": tuple(d.rule for d in _DETECTORS if d.reach == "agent"),
    "tool": tuple(d.rule for d in _DETECTORS if "tool" in d.judges),
}
"""The ids of the rules that have thresholds, by whom thresholds of its own may be set for."""

_LIMITS = {
    **{name: f"that is a limit: set limits.{name}" for name in Limits.__struct_fields__},
    **{rule: f"that rule is a limit: set limits.{name}" for rule, name in LIMIT_OF_RULE.items()},
}
_HINTS: Mapping[Whose, Mapping[str, str]] = {
    "run": _LIMITS,
    "agent": {
        **dict.fromkeys(RULES["run"], "that rule looks across agents: set it under [rules]"),
        **_LIMITS,
    },
    "tool": {
        **dict.fromkeys(RULES["run"], "that rule does not judge tool calls"),
        **dict.fromkeys(_LIMITS, "a tool has no limits but limits.max_calls_per_tool"),
    },
}
_LEVELS = ("warn", "abort")
_OPTIONS = ("enabled", *_LEVELS)
HEAVIEST = 100
"""The weight of a class of `stagnation` is at most so large, and at least as small."""
_WEIGHT = f"a number from -{HEAVIEST} to {HEAVIEST}"
_score_of = AmountOf("a score")


def rules_over(
    current: Mapping[str, Thresholds], table: Mapping[str, object], path: str
) -> dict[str, Thresholds]:
    """Return the rules in force with those of `table` set, or switched off and left out.

    Raises:
        PolicyError: as `rules_said`.

    """
    made = {**current, **rules_said(table, path, current, "run")}
    return {rule: thresholds for rule, thresholds in made.items() if thresholds is not None}


def rules_said(
    table: Mapping[str, object], path: str, current: Mapping[str, Thresholds], whose: Whose
) -> dict[str, Thresholds | None]:
    """Return what `table` says of rules, over their `current` thresholds; `None` is off.

    Raises:
        PolicyError: for a rule that there is not, or a value that it does not take.

    """
    refuse_unknown(table, RULES[whose], f"{path}.", _HINTS[whose])
    return {
        rule: _thresholds_of(rule, value, f"{path}.{rule}", current.get(rule), whose)
        for rule, value in table.items()
    }


def _thresholds_of(
    rule: str, value: object, path: str, current: Thresholds | None, whose: Whose
) -> Thresholds | None:
    if value is None or (isinstance(value, (int, float)) and value == 0):
        return None
    expected = "a table of warn, abort and enabled, or true or false"
    table: Mapping[str, object] = {} if value is True else table_of(value, path, expected)
    own = ("weights",) if whose == "run" and rule == STAGNATION else ()
    refuse_unknown(table, (*_OPTIONS, *own), f"{path}.", _hints_for(rule))
    is_on = switch_of(table.get("enabled", True), f"{path}.enabled")
    start = current or DEFAULT_RULES.get(rule)
    if is_on and start is None and not any(level in table for level in _LEVELS):
        raise wrong(path, "warn, abort or both, for this rule has no thresholds of its own", value)
    read = _score_of if rule == STAGNATION else count_of
    warn, abort = (
        read(table[level], f"{path}.{level}") if level in table else getattr(start, level, None)
        for level in _LEVELS
    )
    return Thresholds(warn=warn, abort=abort) if is_on else None


def _hints_for(rule: str) -> Mapping[str, str]:
    if rule == STAGNATION:
        return {"weights": "set them under [rules.stagnation], for all agents and tools"}
    return {"weights": "only stagnation has weights"}


def weights_over(
    current: Mapping[str, float], rules: Mapping[str, object], path: str
) -> Mapping[str, float]:
    """Return the weights of `stagnation` that are not the built-in ones.

    `rules` is a table of rules that `rules_over` accepted; `None` for a weight is the built-in one.
    """
    of_rule = rules.get(STAGNATION)
    if not isinstance(of_rule, Mapping):
        return current
    own = f"{path}.{STAGNATION}.weights"
    said = table_of(cast("object", of_rule), own).get("weights")
    table = table_of(said, own, "a table of classes and numbers")
    refuse_unknown(table, WEIGHTS, f"{own}.")
    made = {
        name: None
        if weight is None
        else number_of(weight, f"{own}.{name}", _WEIGHT, lowest=-HEAVIEST, highest=HEAVIEST)
        for name, weight in table.items()
    }
    laid = {**current, **made}
    return {name: weight for name, weight in laid.items() if weight is not None}
