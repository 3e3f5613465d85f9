"""Plays scripts with clients for JavaScript, in Node.

Their packages are installed on demand, as `scripts/environment.py` does it for Python: once for
`package.json` and the version of Node, into the same cache outside the tree.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from scripts.environment import ROOT, cache, locked
from tests.clients._plays import LIMIT
from tests.clients._seen import Seen

PROGRAMS = Path(__file__).parent / "javascript"
OLDEST_NODE = 20
_TIMEOUT_S = 120
_INSTALL = ("install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")


class NodeMissingError(RuntimeError):
    """Node or its npm is not there, or is too old; the text says what was expected."""


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
            [_found("node"), program, *arguments],
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
    node, npm = _found("node"), _found("npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    number = version.stdout.strip().removeprefix("v")
    if int(number.split(".")[0]) < OLDEST_NODE:
        raise NodeMissingError(f"{node} is Node {number}; expected {OLDEST_NODE} or later")
    package = PROGRAMS / "package.json"
    key = hashlib.sha256(package.read_bytes()).hexdigest()[:12]
    directory = cache() / f"javascript-{number}-{key}"
    mark = directory / "tree"
    with locked(directory):
        if not mark.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            shutil.copy(package, directory)
            # What npm says must not be taken for what a test says.
            subprocess.run([npm, *_INSTALL], cwd=directory, stdout=sys.stderr, check=True)
            mark.write_text(f"{ROOT}\n")
    return directory / "node_modules"


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise NodeMissingError(
            f"{program!r} was not found on PATH ({os.environ.get('PATH', '')}); the clients for "
            f"JavaScript need Node {OLDEST_NODE} or later with its npm: install it, and try again"
        )
    return found


def _version(package: Path) -> str:
    version: str = json.loads((package / "package.json").read_text())["version"]
    return version
