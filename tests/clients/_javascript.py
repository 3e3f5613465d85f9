"""Plays scripts with clients for JavaScript, in Node.

Their packages are installed on demand; see `scripts/javascript_packages.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from scripts import javascript_packages
from tests.clients._plays import LIMIT
from tests.clients._seen import Seen

PROGRAMS = Path(__file__).parent / "javascript"
_TIMEOUT_S = 120


def play(
    program: str, packages: Sequence[str], root: str, plays: Sequence[tuple[str, bool]]
) -> tuple[list[Seen], dict[str, str]]:
    """Return what a client saw of each play, and the versions of its packages."""
    asked = [{"model": model, "stream": stream, "limit": LIMIT} for model, stream in plays]
    seen = run("play.mjs", program, root, json.dumps(asked))
    versions = {package: _version(installed() / package) for package in packages}
    return msgspec.json.decode(seen, type=list[Seen]), versions


def run(program: str, *arguments: str) -> str:
    """Return what a program prints that uses the packages."""
    modules = installed()
    with TemporaryDirectory(prefix="loopguard-clients-") as made:
        # An import is looked for beside the file that has it, wherever that is called from.
        for path in PROGRAMS.glob("*.mjs"):
            shutil.copy(path, made)
        (Path(made) / "node_modules").symlink_to(modules)
        done = subprocess.run(
            [javascript_packages.found("node"), program, *arguments],
            cwd=made,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        call = " ".join([program, *arguments])
        raise RuntimeError(f"{call} ended with {done.returncode} and said: {done.stderr}")
    return done.stdout


def installed() -> Path:
    """Return the folder of the packages; they are installed now if they are not there yet."""
    return javascript_packages.installed(PROGRAMS)


def _version(package: Path) -> str:
    version: str = json.loads((package / "package.json").read_text())["version"]
    return version
