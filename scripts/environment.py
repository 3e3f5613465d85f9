"""Makes the project's virtual environments on demand, outside the tree, and runs programs in them.

    environment.py NAME                        print the path of the environment's interpreter
    environment.py NAME COMMAND...             run a command, the environment's programs first
    environment.py --every-python NAME ...     the same on each Python found, oldest first
    environment.py --list | --lock | --clean

An environment is made once for its constraint file, `pyproject.toml`, interpreter and tree, and
found again after that. Needs a Python from 3.10 on and its standard library, nothing else.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 10)
NEWEST = (3, 13)
"""The Pythons the project is tested on; a newer one is used only where none of them is found."""

PROBE = "import sys, venv; print(*sys.version_info[:3], sys.prefix != sys.base_prefix)"


class Environment(NamedTuple):
    """What an environment holds besides the project's own dependencies."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resolution: str = "highest"
    """`lowest-direct` takes the oldest versions that `pyproject.toml` allows."""
    may_lack: bool = False
    """Whether packages that cannot be installed are left out, rather than the whole environment."""


FRAMEWORKS = (
    *("ag2", "agent-framework", "agno", "anthropic", "autogen", "claude-agent-sdk", "crewai"),
    *("dspy", "google-adk", "haystack", "langchain", "llama-index", "mcp", "openai-agents"),
    *("pydantic-ai", "semantic-kernel", "smolagents", "strands"),
)
WITH_OLDEST: tuple[str, ...] = (
    *("ag2", "agent-framework", "agno", "anthropic", "autogen", "crewai", "dspy", "haystack"),
    *("langchain", "llama-index", "mcp", "openai-agents", "pydantic-ai", "semantic-kernel"),
    *("claude-agent-sdk", "smolagents", "strands"),
)
"""Frameworks whose oldest supported versions are tried by `make matrix`."""
TESTED_EXTRAS = ("cli", "cost", "otlp", "prometheus", "testing")
ENVIRONMENTS = {
    "uv": Environment(groups=("uv",)),
    "core": Environment(groups=("build",)),
    "test": Environment(TESTED_EXTRAS, ("test",)),
    "oldest": Environment(TESTED_EXTRAS, ("test",), "lowest-direct"),
    **{name: Environment((name, "testing"), (name,)) for name in FRAMEWORKS},
    **{
        f"{name}-oldest": Environment((name, "testing"), (name,), "lowest-direct")
        for name in WITH_OLDEST
    },
    "clients": Environment(("testing",), ("official-clients",)),
    "providers": Environment(("otlp", "prometheus", "testing"), ("providers",)),
    "dashboards": Environment(TESTED_EXTRAS, ("dashboards",)),
    "demo": Environment(
        ("cli", "cost", "openai-agents", "otlp", "pydantic-ai", "testing"), ("demo",)
    ),
    "dev": Environment(("all",), ("dev",)),
    "peers": Environment(groups=("build", "peers"), may_lack=True),
}


class Python(NamedTuple):
    """An interpreter that runs and can make virtual environments."""

    version: tuple[int, int, int]
    path: Path

    @property
    def dotted(self) -> str:
        return ".".join(map(str, self.version))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=sorted(ENVIRONMENTS))
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a program and its arguments")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--every-python", action="store_true", help="on each Python found")
    which.add_argument("--oldest-python", action="store_true", help="not on the newest found")
    which.add_argument("--second-python", action="store_true", help="on the newest but one found")
    which.add_argument("--inner-pythons", action="store_true", help="on all others than these")
    which.add_argument("--list", action="store_true", help="print the Pythons found")
    which.add_argument("--lock", action="store_true", help="resolve requirements/*.txt anew")
    which.add_argument("--clean", action="store_true", help="remove this tree's environments")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{python.dotted}  {python.path}" for python in find_pythons()))
    elif options.lock:
        for name in ENVIRONMENTS:
            lock(name)
    elif options.clean:
        clean()
    elif options.name is None:
        parser.error("name an environment: " + ", ".join(sorted(ENVIRONMENTS)))
    else:
        pythons = chosen(find_pythons(), options)
        return max([use(options.name, python, options.command) for python in pythons], default=0)
    return 0


def chosen(found: Sequence[Python], options: argparse.Namespace) -> Sequence[Python]:
    if options.every_python:
        return found
    if options.inner_pythons:
        return found[1:-2]
    if options.second_python:
        return found[-2:][:1]
    return found[:1] if options.oldest_python else found[-1:]


def use(name: str, python: Python, command: Sequence[str]) -> int:
    """Runs the command with the environment's programs first on PATH, or says where it is."""
    directory = ready(name, python)
    if not command:
        print(interpreter(directory))
        return 0
    print(f"\n== {name}, Python {python.dotted}: {shlex.join(command)}", flush=True)
    path = os.pathsep.join([str(directory / "bin"), os.environ.get("PATH", os.defpath)])
    # Bytecode of the environment and of the tree goes where it stays and disturbs nobody: without
    # any, as where PYTHONDONTWRITEBYTECODE is set, each program takes twice as long to start.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "bytecode")}
    variables = {**os.environ, **bytecode, "PATH": path, "VIRTUAL_ENV": str(directory)}
    program = shutil.which(command[0], path=path)
    if program is None:
        sys.exit(f"{name} has no program {command[0]!r}")
    return subprocess.run([program, *command[1:]], cwd=ROOT, env=variables, check=False).returncode


def find_pythons() -> list[Python]:
    """The newest patch release of each supported minor version on this machine, oldest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = {
        *(path for entry in os.get_exec_path() for path in Path(entry).glob("python3*")),
        *pyenv.glob("versions/3.*/bin/python3"),
        *(Path.home() / ".local/share/uv/python").glob("cpython-3.*/bin/python3"),
        Path(sys.executable),
    }
    named = sorted(path for path in candidates if re.fullmatch(r"python(3(\.\d+)?)?", path.name))
    with ThreadPoolExecutor(4) as pool:
        found = sorted(python for python in pool.map(probe, named) if python is not None)
    newest_patch = {python.version[:2]: python for python in found}
    supported = [python for minor, python in newest_patch.items() if OLDEST <= minor <= NEWEST]
    usable = supported or [python for minor, python in newest_patch.items() if minor > NEWEST]
    if not usable:
        sys.exit(f"no Python from {OLDEST[0]}.{OLDEST[1]} on was found on PATH or in {pyenv}")
    return usable


def probe(path: Path) -> Python | None:
    """The interpreter behind a path; `None` where it does not run (a shim) or is an environment."""
    command = [str(path), "-I", "-c", PROBE]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor, patch, is_environment = answer.stdout.split()
    version = (int(major), int(minor), int(patch))
    return None if is_environment == "True" else Python(version, path)


def ready(name: str, python: Python) -> Path:
    """The environment's directory; made now if it is not there, whole or not at all."""
    directory = cache() / f"{name}-{python.dotted}-{key(name, python)}"
    mark = directory / "tree"
    with locked(directory):
        if not mark.exists():
            shutil.rmtree(directory, ignore_errors=True)
            print(f"making {name} on Python {python.dotted}", file=sys.stderr, flush=True)
            fill(directory, name, python)
            mark.write_text(f"{ROOT}\n")
    return directory


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "otel-loopguard"


def key(name: str, python: Python) -> str:
    """Changes with anything that the environment is made of."""
    digest = hashlib.sha256(f"{python.path}\n".encode())
    digest.update(constraints(name).read_bytes())
    if holds_project(name):
        digest.update(f"{ROOT}\n".encode())
        digest.update((ROOT / "pyproject.toml").read_bytes())
    return digest.hexdigest()[:12]


def constraints(name: str) -> Path:
    return ROOT / "requirements" / f"{name}.txt"


def holds_project(name: str) -> bool:
    return name != "uv"


@contextmanager
def locked(directory: Path) -> Generator[None]:
    """Two makes at once build an environment once."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"{directory.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fill(directory: Path, name: str, python: Python) -> None:
    """Installs the constraint file and the tree with uv, ten times faster, or else with pip.

    uv may be missing for a platform, and it does not read pip's settings (a mirror, say).
    """
    if name != "uv" and fill_with_uv(directory, name, python):
        return
    shutil.rmtree(directory, ignore_errors=True)
    call(python.path, "-m", "venv", directory)
    pip = [interpreter(directory), "-m", "pip", "--disable-pip-version-check"]
    install([*pip, "install", "--quiet"], [*pip, "check"], name)


def fill_with_uv(directory: Path, name: str, python: Python) -> bool:
    try:
        call(python.path, "-m", "venv", "--without-pip", directory)
        target = ["--quiet", "--python", interpreter(directory)]
        install([*uv(), "install", *target], [*uv(), "check", *target], name)
    except subprocess.CalledProcessError as error:
        print(f"{error}: now with pip", file=sys.stderr, flush=True)
        return False
    return True


def uv() -> list[str]:
    return [interpreter(ready("uv", find_pythons()[-1])), "-m", "uv", "pip"]


def install(command: Sequence[str], check: Sequence[str], name: str) -> None:
    try:
        call(*command, "--requirement", constraints(name))
    except subprocess.CalledProcessError:
        if not ENVIRONMENTS[name].may_lack:
            raise
        install_singly(command, constraints(name).read_text().splitlines())
    if holds_project(name):
        call(*command, "--no-deps", "--no-build-isolation", "--editable", ROOT)
        if not ENVIRONMENTS[name].may_lack:
            call(*check)


def install_singly(command: Sequence[str], requirements: Sequence[str]) -> None:
    for requirement in requirements:
        try:
            call(*command, "--no-deps", requirement)
        except subprocess.CalledProcessError:
            print(f"left out: {requirement}", file=sys.stderr, flush=True)


def call(*command: str | Path) -> None:
    """Runs a program; what it prints must not be taken for this script's answer."""
    subprocess.run([*map(str, command)], cwd=ROOT, stdout=sys.stderr, check=True)


def interpreter(directory: Path) -> str:
    return str(directory / "bin" / "python")


def lock(name: str) -> None:
    """Writes the constraint file: a `name==version` a line, good for every supported Python."""
    wanted = ENVIRONMENTS[name]
    call(
        *(*uv(), "compile", "--quiet", "--upgrade"),
        *("--universal", f"--python-version={OLDEST[0]}.{OLDEST[1]}"),
        *("--no-header", "--no-annotate", "--no-emit-index-url"),
        f"--resolution={wanted.resolution}",
        *(f"--extra={extra}" for extra in wanted.extras),
        *(f"--group={group}" for group in wanted.groups),
        *(["pyproject.toml"] if holds_project(name) else []),
        f"--output-file={constraints(name)}",
    )


def clean() -> None:
    """Removes every environment that was made for this tree."""
    for mark in cache().glob("*/tree"):
        if mark.read_text().strip() == str(ROOT):
            shutil.rmtree(mark.parent)
            mark.parent.with_name(f"{mark.parent.name}.lock").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
