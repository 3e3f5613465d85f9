"""What the environment says: variables and policy files. Everything that is read is read here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from otel_loopguard.options.kinds import AbortException, BuiltIn, mode_of
from otel_loopguard.options.rules import RULES
from otel_loopguard.options.toml_text import decoded
from otel_loopguard.options.variables import (
    CONFIG,
    OF_POLICY,
    OF_PROCESSOR,
    given,
    renamed,
    unknown,
)
from otel_loopguard.policy import Mode, Policy, PolicyError

_Option = TypeVar("_Option")

BYTES = 1 << 16
"""A larger policy file is not read: a process at work would wait for that for too long."""

TOO_LARGE = f"it has more than {BYTES:,} bytes"

_CANNOT = "{}: the policy file cannot be read: {}"

OF_A_BAD_FILE = Policy(rules={rule: {"warn": 1} for rule in RULES["run"]})
"""Stands for the policy of a file that cannot be followed, where variables are laid over it: a rule
without thresholds is no mistake of a variable while the file may have meant to give them."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What variables and the file that they name say; `None` is what neither does."""

    policy: Policy
    """The policy from code as it is; else the file's, or the default one, with the variables that
    stand for its options laid over it."""
    mode: Mode | None = None
    """That of the variable, else that of the policy."""
    abort: tuple[BuiltIn, ...] | None = None
    abort_exception: AbortException | None = None
    integrations: tuple[str, ...] | None = None
    hook_timeout_s: float | None = None
    log_events: bool | None = None
    path: str | None = None
    """The policy file that was read."""
    text: str | None = None
    """What stands in it."""


def read_configuration(
    variables: Mapping[str, str] | None = None,
    *,
    policy: Policy | str | os.PathLike[str] | None = None,
) -> Configuration:
    """Read the variables `OTEL_LOOPGUARD_*` and the policy file that code or one of them names.

    With a `policy` from code no file is read, and the variables that stand for options of a policy
    are only checked, as if they were laid over it: code comes first.

    Args:
        variables: those of the process if `None`.
        policy: one from code, or the path of a policy file, instead of that of the variable.

    Raises:
        PolicyError: if anything in them cannot be followed; a line for each mistake, which names
            the variable or the file, the value, and what was expected.

    """
    environment = os.environ if variables is None else variables
    path, base, text = _path_of(policy, environment), OF_A_BAD_FILE, None
    mistakes: list[PolicyError] = []
    if path is None:
        base = Policy.checked(policy)
    else:
        try:
            text = read_text(path)
            base = Policy.from_toml(text, source=path)
        except PolicyError as error:
            mistakes.append(PolicyError(f"{CONFIG}: {error}") if policy is None else error)
    said, of_variables = lay_over(base, environment)
    mistakes += of_variables
    if mistakes:
        raise PolicyError("\n".join(map(str, mistakes)))
    if path is None and policy is not None:
        return msgspec.structs.replace(said, policy=base)
    return msgspec.structs.replace(said, path=path, text=text)


def _path_of(policy: object, variables: Mapping[str, str]) -> str | None:
    """Return the path of the policy file to read: from code, else from the variable."""
    if isinstance(policy, (str, os.PathLike)):
        return os.fspath(policy)
    return config_path(variables) if policy is None else None


def lay_over(
    policy: Policy, variables: Mapping[str, str] | None = None
) -> tuple[Configuration, tuple[PolicyError, ...]]:
    """Return `policy` with the variables laid over it, and what is wrong with those left out.

    Those of the process are taken if `variables` is `None`.
    """
    made: dict[str, Any] = {}
    mistakes: list[PolicyError] = []
    environment = os.environ if variables is None else variables
    for name, text in given(environment).items():
        try:
            if name in OF_POLICY:
                policy_over = made.get("policy", policy)
                made["policy"] = _with_variable(policy_over, name, text)
            elif name in OF_PROCESSOR:
                variable = OF_PROCESSOR[name]
                made[variable.option] = variable.read(text, name)
            elif name != CONFIG:
                mistakes.append(unknown(name))
        except PolicyError as error:
            mistakes.append(error)
    laid: Policy = made.pop("policy", policy)
    return Configuration(policy=laid, mode=laid.mode, **made), tuple(mistakes)


def _with_variable(policy: Policy, name: str, text: str) -> Policy:
    variable = OF_POLICY[name]
    said: Any = variable.read(text, name)
    for key in reversed(variable.path):
        said = {key: said}
    try:
        return Policy.from_mapping(said, base=policy)
    except PolicyError as error:
        raise renamed(error, variable, name) from None


def config_path(variables: Mapping[str, str] | None = None) -> str | None:
    """Return the path of the policy file that `OTEL_LOOPGUARD_CONFIG` names, if it names one."""
    return given(os.environ if variables is None else variables).get(CONFIG)


def read_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file in the form of `loopguard.toml`.

    Raises:
        PolicyError: if the file cannot be read or followed; names the file and what is wrong.

    """
    name = os.fspath(path)
    return Policy.from_toml(read_text(name), source=name)


def read_text(path: str, *, or_else: str = "") -> str:
    """Return the text of a policy file; `or_else` is added to the error if there is no such file.

    Raises:
        PolicyError: the file cannot be read, or is too large; names it.

    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(BYTES + 1)
    except (OSError, ValueError) as error:  # there are paths that the system is not even asked for
        message = _CANNOT.format(path, getattr(error, "strerror", None) or error)
        if not Path(path).exists():
            message += or_else
        raise PolicyError(message) from None
    if len(data) > BYTES:
        raise PolicyError(_CANNOT.format(path, TOO_LARGE))
    try:
        return decoded(data)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}", line=error.line) from None


def resolve_mode(in_code: Mode | None, said: Mode | None, *, can_stop: bool) -> Mode:
    """Return the mode: from code, else what the configuration said, else the default.

    The default is to enforce where something was named that stops a run, else to observe.

    Raises:
        PolicyError: for anything but `observe` and `enforce`.

    """
    return mode_of(in_code, "mode") or said or ("enforce" if can_stop else "observe")


def first_said(in_code: _Option | None, said: _Option | None, default: _Option) -> _Option:
    """Return an option from code, else from the environment, else the default."""
    return next((value for value in (in_code, said) if value is not None), default)
