"""The OpenTelemetry collector that tests and the stack run: built once from its Go modules.

    python -m scripts.collector_binary     print its path

`tests/system/collector` says what is in it. The binary goes to the user's cache directory and is
found there again until those files or Go change. It may be asked for by many test workers at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "tests" / "system" / "collector"
FILES = ("main.go", "go.mod", "go.sum")
OLDEST = (1, 26)
"""What the collector's modules ask for; another toolchain is not downloaded behind your back."""
LIKELY = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")
"""Where Go's own installation puts it, which a PATH may lack."""
LIMIT_S = 1800
"""A first build on two busy cores takes several minutes."""


class CollectorBuildError(RuntimeError):
    """There is no collector and none could be built; the message says what to do."""


def collector_binary() -> Path:
    """Where the collector's program is; it is built now if it is not there.

    Raises:
        CollectorBuildError: Go is missing or too old, or the build has failed.

    """
    go, version = find_go()
    binary = cache() / f"collector-{key(version)}" / "loopguard-collector"
    if not binary.exists():
        with locked(binary.parent):
            if not binary.exists():
                build(go, binary)
    return binary


def find_go() -> tuple[Path, str]:
    """The first Go on PATH or in its usual place that is new enough, and its version."""
    candidates = [each for each in (shutil.which("go"), *LIKELY) if each and Path(each).exists()]
    found: list[str] = []
    for each in candidates:
        asked = subprocess.run(
            [each, "env", "GOVERSION"],
            cwd="/",
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        version = asked.stdout.strip()
        numbers = re.match(r"go(\d+)\.(\d+)", version)
        if numbers and (int(numbers[1]), int(numbers[2])) >= OLDEST:
            return Path(each), version
        found.append(f"{each} is {version or asked.stderr.strip()!r}")
    raise CollectorBuildError(
        f"Go {OLDEST[0]}.{OLDEST[1]} or later is needed to build the collector in {SOURCES}: "
        f"{'; '.join(found) or 'there is no `go` on PATH'}. Install it and put its `bin` on PATH"
    )


def key(version: str) -> str:
    """Changes with anything that the binary is made of."""
    digest = hashlib.sha256(version.encode())
    for name in FILES:
        digest.update((SOURCES / name).read_bytes())
    return digest.hexdigest()[:12]


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "otel-loopguard"


@contextmanager
def locked(directory: Path) -> Generator[None]:
    """One of several workers builds, the others wait and find what it has built."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"{directory.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(go: Path, binary: Path) -> None:
    """Builds whole or not at all: what a stopped build leaves has another name."""
    binary.parent.mkdir(parents=True, exist_ok=True)
    unfinished = binary.with_suffix(".unfinished")
    print(f"building the collector in {SOURCES}; takes minutes once", file=sys.stderr, flush=True)
    command: Sequence[str] = [
        *(str(go), "build", "-mod=readonly", "-buildvcs=false", "-trimpath"),
        *("-ldflags=-s -w", "-o", str(unfinished), "."),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=SOURCES,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise CollectorBuildError(
            f"{shlex.join(command)} in {SOURCES} was not done after {LIMIT_S} s; "
            "run it by hand: what it has compiled is kept"
        ) from error
    if done.returncode:
        raise CollectorBuildError(
            f"{shlex.join(command)} in {SOURCES} has failed:\n{done.stdout[-3000:]}\n"
            "Go downloads the modules that go.mod names: is its module proxy (GOPROXY) reachable?"
        )
    unfinished.replace(binary)


def environment() -> dict[str, str]:
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}


if __name__ == "__main__":
    try:
        print(collector_binary())
    except CollectorBuildError as failure:
        sys.exit(str(failure))
