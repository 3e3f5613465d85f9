"""The kinds of values that a policy takes, and what is wrong with one that is of no such kind."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar, cast

import msgspec

from otel_loopguard.options.errors import joined, wrong
from otel_loopguard.settings import Scope

Mode: TypeAlias = Literal["observe", "enforce"]
"""`observe` reports, `enforce` stops runs as well."""

BuiltIn: TypeAlias = Literal["integration", "gate", "veto", "cancel"]
"""`integration`: frameworks that ask before their calls are told not to make them. `gate`: model
requests of the run do not leave. `veto`: calls are not made whose spans let an exception out when
they start. `cancel`: its root task is cancelled, if steps still start although requests were
refused, or if none is made because the run hangs."""

BUILT_IN: tuple[BuiltIn, ...] = ("integration", "gate", "veto", "cancel")
"""The built-in stops, as options name them."""

AbortException: TypeAlias = Literal["ordinary", "base"]
"""What a refused call raises: `ordinary` is `RunAborted`, `base` is `RunInterrupted`, which
`except Exception` does not catch."""

_Made = TypeVar("_Made")
_Name = TypeVar("_Name", bound=str)

_MODES: tuple[Mode, ...] = ("observe", "enforce")
_EXCEPTIONS: tuple[AbortException, ...] = ("ordinary", "base")
_SCOPES: tuple[Scope, ...] = ("run", "agent", "conversation")

_SHORTEST_S, _LONGEST_S = 1e-9, 1e6
LARGEST = 2**63 - 1
"""What an attribute of a span can hold."""
_OFF = "(0 switches it off)"


def _one_of(names: tuple[_Name, ...], value: object, path: str) -> _Name | None:
    if value is None:
        return None
    for name in names:
        if value == name:
            return name
    *most, last = map(repr, names)
    raise wrong(path, f"{', '.join(most)} or {last}", value)


def mode_of(value: object, path: str) -> Mode | None:
    """Return the mode that a value names; `None` for `None`.

    Raises:
        PolicyError: for anything else; `path` is what it calls the value.

    """
    return _one_of(_MODES, value, path)


def abort_exception_of(value: object, path: str) -> AbortException | None:
    """Return the exception that a value names; `None` for `None`.

    Raises:
        PolicyError: for anything else; `path` is what it calls the value.

    """
    return _one_of(_EXCEPTIONS, value, path)


def scope_of(value: object, path: str) -> Scope | None:
    """Return the scope that a value names; `None` for `None`.

    Raises:
        PolicyError: for anything else; `path` is what it calls the value.

    """
    return _one_of(_SCOPES, value, path)


def switch_of(value: object, path: str) -> bool:
    """Return a value that is true or false."""
    if not isinstance(value, bool):
        raise wrong(path, "true or false", value)
    return value


def count_of(value: object, path: str) -> int | None:
    """Return a whole number; `None` for 0 and `None`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong(path, f"a whole number of at least 1 {_OFF}", value)
    if value > LARGEST:
        raise wrong(path, f"a whole number of at most {LARGEST}", value)
    return value or None


class CountBetween(msgspec.Struct, frozen=True):
    """Reads a whole number in a range; `None` for 0 and `None`."""

    lowest: int
    highest: int

    def __call__(self, value: object, path: str) -> int | None:
        """Return the number."""
        number = count_of(value, path)
        if number is not None and not self.lowest <= number <= self.highest:
            between = f"from {self.lowest} to {self.highest}"
            raise wrong(path, f"a whole number {between} {_OFF}", value)
        return number


class AmountOf(msgspec.Struct, frozen=True):
    """Reads a number above 0 of something; `None` for 0 and `None`."""

    what: str

    def __call__(self, value: object, path: str) -> float | None:
        """Return the number."""
        if value is None:
            return None
        number = _finite(value)
        if number is None or number < 0:
            raise wrong(path, f"{self.what} above 0 {_OFF}", value)
        return number or None


def number_of(
    value: object, path: str, expected: str, *, lowest: float, highest: float = sys.float_info.max
) -> float:
    """Return a number from `lowest` to `highest`."""
    number = _finite(value)
    if number is None or not lowest <= number <= highest:
        raise wrong(path, expected, value)
    return number


def seconds_of(value: object, path: str) -> float:
    """Return a number of seconds that a thread can wait: not one that stands for ever."""
    expected = "a number of seconds above 0, of a million at most"
    return number_of(value, path, expected, lowest=_SHORTEST_S, highest=_LONGEST_S)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def names_of(
    value: object, path: str, expected: str = "a list of names", each: str = "a name"
) -> tuple[str, ...]:
    """Return the names in a list; nothing for `None`. `each` is what an error says of one."""
    if value is None:
        return ()
    if isinstance(value, (str, bytes, bytearray)) or not isinstance(value, Sequence):
        raise wrong(path, expected, value)
    names = tuple(cast("Sequence[object]", value))
    for place, name in enumerate(names):
        if not (isinstance(name, str) and name):
            raise wrong(f"{path}[{place}]", each, name)
    return cast("tuple[str, ...]", names)


def patterns_of(value: object, path: str) -> tuple[str, ...]:
    """Return the regular expressions in a list; nothing for `None`."""
    each = "a regular expression that is not empty"
    patterns = names_of(value, path, "a list of regular expressions", each)
    for place, pattern in enumerate(patterns):
        try:
            re.compile(pattern)
        except Exception as error:  # noqa: BLE001 -- too large and too deep are errors of their own
            expected = f"a regular expression ({error or type(error).__name__})"
            raise wrong(f"{path}[{place}]", expected, pattern) from None
    return patterns


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


def laid_over(
    current: Mapping[str, _Made],
    table: Mapping[str, object],
    path: str,
    read: Callable[[object, str, _Made | None], _Made | None],
) -> dict[str, _Made]:
    """Return `current` with what `read` makes of each entry of `table`; `None` takes one out.

    `read` is given the value, its path and what is current. What is new comes first.
    """
    made = {key: read(value, joined(path, key), current.get(key)) for key, value in table.items()}
    kept = {key: value for key, value in current.items() if key not in made}
    return {**{key: value for key, value in made.items() if value is not None}, **kept}
