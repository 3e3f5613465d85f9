"""Policies as the command line names them: files, `default` and `none`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from otel_loopguard.cli.tables import printable
from otel_loopguard.environment import read_text
from otel_loopguard.policy import Policy

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
    return {
        Path(path).stem if stems[Path(path).stem] == 1 else path: read_named(path) for path in given
    }


def read_named(path: str) -> Policy:
    """Read a policy file, or take the policy that one of the known words names.

    Raises:
        PolicyError: the file cannot be read or followed; names it and what is wrong.

    """
    if is_word(path):
        return Policy() if path == "default" else Policy.none()
    text = read_text(path, or_else="; expected a policy file, or 'default' or 'none'")
    return Policy.from_toml(text, source=path)


def is_word(path: str) -> bool:
    """Say whether this is no file, but the name of a policy."""
    return path in _KNOWN and not Path(path).exists()


def tell_warnings(policies: Mapping[str, Policy], console: Console) -> None:
    """Say what of each policy will not do what was meant."""
    for name, policy in policies.items():
        for warning in policy.warnings:
            console.print(printable(f"{name}: {warning}"))
