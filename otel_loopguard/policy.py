"""The rules and limits in force, and what is wrong with a bad one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import msgspec

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS, Limits, Settings
from otel_loopguard.options import (
    LIMIT_OF_RULE,
    Mode,
    PolicyError,
    limit_of,
    mode_of,
    refuse_unknown,
    table_of,
    thresholds_of,
    wrong,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LimitOptions", "Mode", "Policy", "PolicyError"]

_SECTIONS = ("mode", "limits", "rules")
_UNDER_LIMITS = dict.fromkeys(Limits.__struct_fields__, "write it under [limits]")
_IS_A_LIMIT = {
    rule: f"that rule is a limit: set limits.{option}" for rule, option in LIMIT_OF_RULE.items()
}


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
        made = _override(_DEFAULT, mode, table_of(rules, "rules"), limits, limits_path="")
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
    def checked(cls, policy: object) -> Policy:
        """Return `policy`, the default one for `None`.

        Raises:
            PolicyError: if it is no policy; says how to make one of a file or a mapping.

        """
        if policy is None:
            return cls()
        if isinstance(policy, cls):
            return policy
        kind, remedy = type(policy), ""
        if issubclass(kind, str):
            remedy = f"; read a file with read_policy({policy!r})"
        elif issubclass(kind, Mapping):
            remedy = "; make one with Policy.from_mapping(...)"
        raise wrong("policy", f"a Policy or None{remedy}", policy)

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
        table = table_of(mapping, "policy")
        refuse_unknown(table, _SECTIONS, "", _UNDER_LIMITS)
        start = cls.checked(base)
        mode, settings = _override(
            (start.mode, start.settings),
            table.get("mode"),
            table_of(table.get("rules"), "rules"),
            table_of(table.get("limits"), "limits"),
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
    refuse_unknown(limits, Limits.__struct_fields__, limits_path)
    refuse_unknown(rules, DEFAULT_RULES, "rules.", _IS_A_LIMIT)
    new_limits = {
        name: limit_of(name, value, f"{limits_path}{name}") for name, value in limits.items()
    }
    new_rules = dict(settings.rules)
    for name, value in rules.items():
        thresholds = thresholds_of(name, value, settings.rules.get(name))
        if thresholds is None:
            new_rules.pop(name, None)
        else:
            new_rules[name] = thresholds
    return (
        mode_of(mode, "mode") or start_mode,
        Settings(msgspec.structs.replace(settings.limits, **new_limits), new_rules),
    )
