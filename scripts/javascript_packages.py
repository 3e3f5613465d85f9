"""Packages for Node, installed on demand, as `environment.py` does it for Python.

    python -m scripts.javascript_packages FOLDER     print where those of FOLDER/package.json are

Once for each `package.json` and version of Node, into the cache outside the tree. No lock file is
written: versions in `package.json` are exact.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.environment import ROOT, cache, locked

OLDEST_NODE = 20
_INSTALL = ("install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")


class NodeMissingError(RuntimeError):
    """Node or its npm is not there, or is too old; the text says what was expected."""


def installed(folder: Path) -> Path:
    """Return the `node_modules` of a folder's `package.json`; they are installed now if need be.

    Raises:
        NodeMissingError: there is no Node, or it is too old.

    """
    node, npm = found("node"), found("npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    number = version.stdout.strip().removeprefix("v")
    if int(number.split(".")[0]) < OLDEST_NODE:
        raise NodeMissingError(f"{node} is Node {number}; expected {OLDEST_NODE} or later")
    package = folder / "package.json"
    key = hashlib.sha256(package.read_bytes()).hexdigest()[:12]
    directory = cache() / f"javascript-{number}-{key}"
    mark = directory / "tree"
    with locked(directory):
        if not mark.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            shutil.copy(package, directory)
            # What npm says must not be taken for what a program says.
            subprocess.run([npm, *_INSTALL], cwd=directory, stdout=sys.stderr, check=True)
            mark.write_text(f"{ROOT}\n")
    return directory / "node_modules"


def found(program: str) -> str:
    """Return where Node's program is.

    Raises:
        NodeMissingError: it is not on PATH.

    """
    path = shutil.which(program)
    if path is None:
        raise NodeMissingError(
            f"{program!r} was not found on PATH ({os.environ.get('PATH', '')}); expected Node "
            f"{OLDEST_NODE} or later with its npm: install it, and try again"
        )
    return path


if __name__ == "__main__":
    print(installed(Path(sys.argv[1])))
