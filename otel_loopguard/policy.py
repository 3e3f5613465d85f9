"""The rules and limits in force, and what is wrong with a bad one."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, cast

import msgspec

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS, Limits, Settings, Thresholds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Unpack

Mode: TypeAlias = Literal["observe", "enforce"]
"""`observe` reports, `enforce` stops runs as well."""

_SECTIONS = ("mode", "limits", "rules")
_RULE_OPTIONS = ("enabled", "warn", "abort")
_SHORTEST_WINDOW = 2
_LONGEST_WINDOW = 256


class PolicyError(ValueError):
    """A policy that cannot be followed; the text names path, value and expectation."""


class LimitOptions(TypedDict, total=False):
    """The limits as keyword arguments; `0` or `None` switches one off.

    Of N the N-th is allowed and the next one is refused. `max_duration_s` is in seconds, and a run
    is late at equality. `max_calls_per_tool` maps tool names to limits.
    """

    max_steps: int | None
    max_llm_calls: int | None
    max_tool_calls: int | None
    max_calls_per_tool: Mapping[str, int] | None
    max_duration_s: float | None
    max_repeated_calls: int | None
    compare_arguments: bool
    max_same_tool_calls: int | None
    loop_pattern_window: int | None


class Policy:
    """The rules and limits in force. Immutable.

    `Policy()` has the default rules and no limits, `Policy.none()` has nothing; keyword arguments
    and `rules={"repeated_result": {"warn": 3, "abort": 5}}` are laid over that. `mode` is
    `observe`, `enforce`, or `None` where the policy does not say.

    Raises:
        PolicyError: for an unknown name or a value that is not what the option takes.

    """

    __slots__ = ("_mode", "_settings")

    _mode: Mode | None
    _settings: Settings

    def __init__(
        self,
        *,
        mode: Mode | None = None,
        rules: Mapping[str, object] | None = None,
        **limits: Unpack[LimitOptions],
    ) -> None:
        made = _override(_DEFAULT, mode, _table(rules, "rules"), limits, limits_path="")
        self._mode, self._settings = made

    @property
    def mode(self) -> Mode | None:
        """Whether to report or to stop as well; `None` where the policy does not say."""
        return self._mode

    @property
    def settings(self) -> Settings:
        """The limits, and the thresholds of each rule in force."""
        return self._settings

    @classmethod
    def none(cls) -> Policy:
        """Return the policy without any rule or limit."""
        return cls._of(None, Settings(Limits(), {}))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], *, base: Policy | None = None) -> Policy:
        """Read `mode`, `limits` and `rules`, as in `loopguard.toml`, over `base` (the default).

        Raises:
            PolicyError: names the path of what is wrong, such as `limits.max_steps`.

        """
        table = _table(mapping, "policy")
        _known(table, _SECTIONS, "")
        start = base if base is not None else cls()
        mode, settings = _override(
            (start.mode, start.settings),
            table.get("mode"),
            _table(table.get("rules"), "rules"),
            _table(table.get("limits"), "limits"),
            limits_path="limits.",
        )
        return cls._of(mode, settings)

    @classmethod
    def from_toml(cls, text: str, *, source: str = "loopguard.toml") -> Policy:
        """Read the text of a `loopguard.toml`; `source` is what errors call it.

        Raises:
            PolicyError: names the source, and line or path of what is wrong.

        """
        try:
            return cls.from_mapping(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            message = f"{source}: expected a TOML file, but {error}"
            raise PolicyError(message) from None
        except PolicyError as error:
            message = f"{source}: {error}"
            raise PolicyError(message) from None

    def with_limits(self, **limits: Unpack[LimitOptions]) -> Policy:
        """Return this policy with some limits set or switched off."""
        return self._of(*_override((self.mode, self.settings), None, {}, limits, limits_path=""))

    @classmethod
    def _of(cls, mode: Mode | None, settings: Settings) -> Policy:
        self = cls.__new__(cls)
        self._mode, self._settings = mode, settings
        return self

    @property
    def rule_ids(self) -> tuple[str, ...]:
        """The ids of the rules and limits in force."""
        return tuple(d.rule for d in DETECTORS if d.of(self.settings) is not None)

    def __eq__(self, other: object) -> bool:
        """Compare by what is in force."""
        if not isinstance(other, Policy):
            return NotImplemented
        return (self.mode, self.settings) == (other.mode, other.settings)

    __hash__ = None  # type: ignore[assignment]  # holds mappings, as a dict does

    def __repr__(self) -> str:
        """Show mode, limits and rules."""
        limits, rules = self.settings
        return f"Policy(mode={self.mode!r}, limits={limits!r}, rules={dict(rules)!r})"


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
    raise _wrong(path, "'observe' or 'enforce'", value)


_Made: TypeAlias = "tuple[Mode | None, Settings]"
_DEFAULT: _Made = (None, Settings(Limits(), DEFAULT_RULES))


def _override(
    start: _Made,
    mode: object,
    rules: Mapping[str, object],
    limits: Mapping[str, object],
    *,
    limits_path: str,
) -> _Made:
    start_mode, settings = start
    _known(limits, Limits.__struct_fields__, limits_path)
    _known(rules, DEFAULT_RULES, "rules.")
    new_limits = {
        name: _limit(name, value, f"{limits_path}{name}") for name, value in limits.items()
    }
    new_rules = dict(settings.rules)
    for name, value in rules.items():
        thresholds = _thresholds(name, value, settings.rules.get(name))
        if thresholds is None:
            new_rules.pop(name, None)
        else:
            new_rules[name] = thresholds
    return (
        mode_of(mode, "mode") or start_mode,
        Settings(msgspec.structs.replace(settings.limits, **new_limits), new_rules),
    )


def _thresholds(name: str, value: object, current: Thresholds | None) -> Thresholds | None:
    path = f"rules.{name}"
    if value is False:
        return None
    table: Mapping[str, object] = {} if value is True else _table(value, path)
    _known(table, _RULE_OPTIONS, f"{path}.")
    enabled = table.get("enabled", True)
    if not isinstance(enabled, bool):
        raise _wrong(f"{path}.enabled", "true or false", enabled)
    if not enabled:
        return None
    start = current or DEFAULT_RULES[name]
    warn, abort = (
        _occurrence(table[level], f"{path}.{level}") if level in table else getattr(start, level)
        for level in ("warn", "abort")
    )
    return Thresholds(warn=warn, abort=abort)


def _limit(name: str, value: object, path: str) -> object:
    if name == "compare_arguments":
        if not isinstance(value, bool):
            raise _wrong(path, "true or false", value)
        return value
    if name == "max_calls_per_tool":
        return {
            tool: limit
            for tool, number in _table(value, path).items()
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
        raise _wrong(path, f"{expected} (0 or nothing switches it off)", value)
    return number


def _occurrence(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _wrong(path, "a whole number of at least 1 (0 or None switches it off)", value)
    return value or None


def _seconds(value: object, path: str) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value <= sys.float_info.max
    ):
        raise _wrong(path, "a number of seconds above 0 (0 or None switches it off)", value)
    return float(value) or None


def _table(value: object, path: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(path, "a table of names and values", value)
    table = cast("Mapping[object, object]", value)
    for key in table:
        if not isinstance(key, str):
            raise _wrong(path, "names as keys", key)
    return cast("Mapping[str, object]", table)


def _known(mapping: Mapping[str, object], names: Iterable[str], path: str) -> None:
    allowed = tuple(names)
    for name in mapping:
        if name not in allowed:
            near = difflib.get_close_matches(str(name), allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(allowed)}"
            message = f"{path}{name}: there is no such option; {hint}"
            raise PolicyError(message)


def _wrong(path: str, expected: str, value: object) -> PolicyError:
    return PolicyError(f"{path}: expected {expected}, got {value!r}")
