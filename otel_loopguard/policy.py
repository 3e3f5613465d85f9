"""The rules and limits in force, and what is wrong with a bad one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from otel_loopguard.detectors import DETECTORS
from otel_loopguard.options.doubts import warnings_of
from otel_loopguard.options.errors import PolicyError, refuse_unknown, wrong
from otel_loopguard.options.kinds import Mode, table_of
from otel_loopguard.options.limits import LimitOptions
from otel_loopguard.options.tables import DEFAULT, ELSEWHERE, SECTIONS, override, rules_on
from otel_loopguard.options.text import text_of
from otel_loopguard.options.toml_text import read_toml
from otel_loopguard.settings import Limits, Scope, Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LimitOptions", "Mode", "Policy", "PolicyError"]


class Policy:
    """The rules and limits in force. Immutable.

    `Policy()` has the default rules and no limits, `Policy.none()` has nothing; keyword arguments
    and `rules={"repeated_result": {"warn": 3, "abort": 5}}` are laid over that. `mode` is
    `observe`, `enforce`, or `None` where the policy does not say; `scope` is what the totals are
    held against. `tools`, `agents`, `usage` and `masking` take what the tables of these names in
    `loopguard.toml` do.

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
        scope: Scope = "run",
        steer: bool | str | None = None,
        rules: Mapping[str, object] | None = None,
        tools: Mapping[str, object] | None = None,
        agents: Mapping[str, object] | None = None,
        usage: Mapping[str, object] | None = None,
        masking: Mapping[str, object] | None = None,
        **limits: Unpack[LimitOptions],
    ) -> None:
        said = {
            "mode": mode,
            "scope": scope,
            "steer": steer,
            "rules": rules,
            "tools": tools,
            "agents": agents,
            "usage": usage,
            "masking": masking,
        }
        self._mode, self._settings = override(DEFAULT, said, limits, limits_path="")

    @property
    def mode(self) -> Mode | None:
        """Whether to report or to stop as well; `None` where the policy does not say."""
        return self._mode

    @property
    def settings(self) -> Settings:
        """All that the policy settles: limits, thresholds, and what is said of tools and agents."""
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
        """Read the tables of a `loopguard.toml` over `base` (the default policy).

        What is said of a tool or an agent is laid over what `base` says of it, option by option;
        new patterns for agents come before those of `base`. A price, and a list, is replaced whole.

        Raises:
            PolicyError: names the path of what is wrong, such as `limits.max_steps`.

        """
        table = table_of(mapping, "policy")
        refuse_unknown(table, SECTIONS, "", ELSEWHERE)
        start = cls.checked(base)
        limits = table_of(table.get("limits"), "limits")
        made = override((start.mode, start.settings), table, limits, limits_path="limits.")
        return cls._of(*made)

    @classmethod
    def from_toml(cls, text: str, *, source: str = "") -> Policy:
        """Read the text of a `loopguard.toml`; `source` is the file's name, for errors.

        Raises:
            PolicyError: names the source, if there is one, and line or path of what is wrong.

        """
        where, kind = (f"{source}: ", "a TOML file") if source else ("", "TOML")
        try:
            return cls.from_mapping(read_toml(text, kind))
        except PolicyError as error:
            raise PolicyError(f"{where}{error}", path=error.path, line=error.line) from None

    def with_limits(self, **limits: Unpack[LimitOptions]) -> Policy:
        """Return this policy with some limits set or switched off."""
        return self._of(*override((self.mode, self.settings), {}, limits, limits_path=""))

    @classmethod
    def _of(cls, mode: Mode | None, settings: Settings) -> Policy:
        self = cls.__new__(cls)
        self._mode, self._settings = mode, settings
        return self

    @property
    def rule_ids(self) -> tuple[str, ...]:
        """The ids of the rules and limits in force, be it for one agent or tool only."""
        on = rules_on(self.settings)
        return tuple(detector.rule for detector in DETECTORS if detector.rule in on)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is no mistake, but will not do what was meant; each says what to do."""
        return warnings_of(self.settings)

    def __eq__(self, other: object) -> bool:
        """Compare by what is in force; of the agents' patterns the order counts."""
        if not isinstance(other, Policy):
            return NotImplemented
        return (self.mode, self.settings, tuple(self.settings.agents)) == (
            other.mode,
            other.settings,
            tuple(other.settings.agents),
        )

    __hash__ = None  # type: ignore[assignment]  # holds mappings, as a dict does

    def __repr__(self) -> str:
        """Show what makes a policy equal to this one."""
        return text_of(self.mode, self.settings)
