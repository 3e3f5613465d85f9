"""What the environment says: variables and policy files. Everything that is read is read here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from otel_loopguard.options.kinds import mode_of
from otel_loopguard.policy import Mode, Policy, PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping

MODE_VARIABLE = "OTEL_LOOPGUARD_MODE"


def read_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file in the form of `loopguard.toml`.

    Raises:
        PolicyError: if the file cannot be read or followed; names the file and what is wrong.

    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        message = f"{os.fspath(path)}: the policy file cannot be read: {why}"
        raise PolicyError(message) from None
    return Policy.from_toml(text, source=os.fspath(path))


def resolve_mode(
    in_code: Mode | None,
    policy: Policy,
    *,
    can_stop: bool,
    variables: Mapping[str, str] | None = None,
) -> Mode:
    """Return the mode: from code, else `OTEL_LOOPGUARD_MODE`, else the policy, else by default.

    The default is to enforce where the code named something that stops a run, else to observe.

    Raises:
        PolicyError: for anything but `observe` and `enforce`.

    """
    in_environment = (os.environ if variables is None else variables).get(MODE_VARIABLE, "")
    return (
        mode_of(in_code, "mode")
        or mode_of(in_environment.strip().lower() or None, MODE_VARIABLE)
        or policy.mode
        or ("enforce" if can_stop else "observe")
    )
