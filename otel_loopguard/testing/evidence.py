"""A file that says what tests of guards expected and observed, of which source, on what."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions
from pathlib import Path

import msgspec

from otel_loopguard.testing.marking import KINDS
from otel_loopguard.testing.tested import RunsOfTest
from otel_loopguard.version import VERSION

_GIT_S = 10.0


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Which source was tested; `None` where git does not say."""

    revision: str | None = None
    is_dirty: bool | None = None
    """Whether files differed from that revision, new ones included."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    format: int = 1
    loopguard: str = VERSION
    source: Source
    python: str
    platform: str
    packages: dict[str, str]
    """Every installed distribution, and its version."""
    command: str
    tests: dict[str, list[RunsOfTest]]
    """By kind: `unit`, `adapter`, `model-evaluation`."""


def evidence(tests: Iterable[RunsOfTest], command: Sequence[str], root: Path) -> Evidence:
    """Return the evidence of tests that were run by this command below this directory."""
    in_order = sorted(tests, key=lambda each: each.test)
    return Evidence(
        source=source_of(root),
        python=platform.python_version(),
        platform=platform.platform(),
        packages=dict(sorted(_packages())),
        command=shlex.join(command),
        tests={kind: [each for each in in_order if each.kind == kind] for kind in KINDS},
    )


def write_evidence(path: Path, made: Evidence) -> None:
    """Write it as JSON, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")


def source_of(root: Path) -> Source:
    """Return the revision that is checked out at a directory."""
    revision, status = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain")
    return Source(
        revision=revision or None, is_dirty=None if status is None else bool(status.strip())
    )


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 -- nothing of it is anybody's input
            ("git", "-C", str(root), *arguments),  # noqa: S607 -- whichever git there is
            capture_output=True,
            text=True,
            timeout=_GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _packages() -> Iterable[tuple[str, str]]:
    for each in distributions():
        if "Name" in each.metadata:  # one that was half removed has none
            yield each.metadata["Name"], each.version


def command_line(program: str = "pytest") -> list[str]:
    """Return the command that runs this process, without the directory of its program."""
    return [program, *sys.argv[1:]]
