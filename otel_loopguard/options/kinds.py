"""The options of a policy: what each takes, and what is wrong with a value that it does not."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from otel_loopguard.detectors import DEFAULT_RULES, Thresholds

Mode: TypeAlias = Literal["observe", "enforce"]
"""`observe` reports, `enforce` stops runs as well."""

LIMIT_OF_RULE = {
    "step_budget": "max_steps",
    "llm_call_budget": "max_llm_calls",
    "tool_call_budget": "max_tool_calls",
    "time_budget": "max_duration_s",
    "repeated_call_limit": "max_repeated_calls",
    "same_tool": "max_same_tool_calls",
    "loop_pattern": "loop_pattern_window",
}
"""The option that switches on each rule that is a limit."""

_RULE_OPTIONS = ("enabled", "warn", "abort")
_SHORTEST_WINDOW = 2
_LONGEST_WINDOW = 256
_SHOWN = 200


class PolicyError(ValueError):
    """A policy that cannot be followed; the text names path, value and expectation."""


def mode_of(value: object, path: str) -> Mode | None:
    """Return the mode that a value names; `None` for `None`.

    Raises:
        PolicyError: for anything else; `path` is what it calls the value.

    """
    if value is None:
        return None
    if value == "observe":
        return "observe"
    if value == "enforce":
        return "enforce"
    raise wrong(path, "'observe' or 'enforce'", value)


def thresholds_of(name: str, value: object, current: Thresholds | None) -> Thresholds | None:
    """Return the thresholds that `value` sets for a rule, over `current`; `None` is off."""
    path = f"rules.{name}"
    if value is None or value is False or value == 0:
        return None
    expected = "a table of warn, abort and enabled, or true or false"
    table: Mapping[str, object] = {} if value is True else table_of(value, path, expected)
    refuse_unknown(table, _RULE_OPTIONS, f"{path}.")
    enabled = table.get("enabled", True)
    if not isinstance(enabled, bool):
        raise wrong(f"{path}.enabled", "true or false", enabled)
    if not enabled:
        return None
    start = current or DEFAULT_RULES[name]
    warn, abort = (
        _occurrence(table[level], f"{path}.{level}") if level in table else getattr(start, level)
        for level in ("warn", "abort")
    )
    return Thresholds(warn=warn, abort=abort)


def limit_of(name: str, value: object, path: str) -> object:
    """Return what a limit takes for `value`; `None` switches it off."""
    if name == "compare_arguments":
        if not isinstance(value, bool):
            raise wrong(path, "true or false", value)
        return value
    if name == "max_calls_per_tool":
        return {
            tool: limit
            for tool, number in table_of(value, path).items()
            if (limit := _occurrence(number, f"{path}.{tool}")) is not None
        }
    if name == "max_duration_s":
        return _seconds(value, path)
    number = _occurrence(value, path)
    if (
        name == "loop_pattern_window"
        and number is not None
        and not _SHORTEST_WINDOW <= number <= _LONGEST_WINDOW
    ):
        expected = f"a whole number from {_SHORTEST_WINDOW} to {_LONGEST_WINDOW}"
        raise wrong(path, f"{expected} (0 or nothing switches it off)", value)
    return number


def _occurrence(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong(path, "a whole number of at least 1 (0 or None switches it off)", value)
    return value or None


def _seconds(value: object, path: str) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value <= sys.float_info.max
    ):
        raise wrong(path, "a number of seconds above 0 (0 or None switches it off)", value)
    return float(value) or None


def table_of(
    value: object, path: str, expected: str = "a table of names and values"
) -> Mapping[str, object]:
    """Return a mapping with names as keys; an empty one for `None`."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(path, expected, value)
    table = cast("Mapping[object, object]", value)
    for key in table:
        if not isinstance(key, str):
            raise wrong(path, "names as keys", key)
    return cast("Mapping[str, object]", table)


def refuse_unknown(
    mapping: Mapping[str, object],
    names: Iterable[str],
    path: str,
    hints: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse a name that is none of `names`.

    Raises:
        PolicyError: says what was probably meant, or what `hints` says of that name.

    """
    allowed = tuple(names)
    for name in mapping:
        if name not in allowed:
            near = difflib.get_close_matches(str(name), allowed, n=1)
            guess = (
                f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(allowed)}"
            )
            message = f"{path}{name}: there is no such option here; {hints.get(name, guess)}"
            raise PolicyError(message)


def wrong(path: str, expected: str, value: object) -> PolicyError:
    """Return the error for a value that is not what was expected."""
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 -- a foreign value, or an integer too long to print
        shown = f"a {type(value).__qualname__} that cannot be shown"
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}..."
    return PolicyError(f"{path}: expected {expected}, got {shown}")
