"""The policies that a backtest compares, and what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from otel_loopguard.environment import read_policy
from otel_loopguard.policy import Policy, PolicyError

_KNOWN = ("default", "none")
"""Words that name a policy where there is no such file."""


def read_policies(paths: Sequence[str]) -> Mapping[str, Policy]:
    """Read policy files by name: their stems, or their paths where two have the same stem.

    Without any, it is the default policy, which `default` also names; `none` is the one without any
    rule.

    Raises:
        PolicyError: a file cannot be read or followed.

    """
    given = tuple(dict.fromkeys(paths)) or ("default",)
    stems = Counter(Path(path).stem for path in given)
    return {Path(path).stem if stems[Path(path).stem] == 1 else path: _read(path) for path in given}


def _read(path: str) -> Policy:
    if path in _KNOWN and not Path(path).exists():
        return Policy() if path == "default" else Policy.none()
    try:
        return read_policy(path)
    except PolicyError as error:
        if Path(path).exists():
            raise
        message = f"{error}; expected a policy file, or 'default' or 'none'"
        raise PolicyError(message) from None
