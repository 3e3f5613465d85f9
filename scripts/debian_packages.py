"""Programs out of Debian's packages: found, or installed now, and no service of theirs is started.

    python -m scripts.debian_packages promtool amtool     print the path of each

Tests run these programs themselves, on free ports. `programs` may be called by many test workers at
once. It installs as root in a container only: elsewhere it says what to install, since Debian's
packages start services with the machine, and that is for its owner to want.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

PACKAGE_OF_PROGRAM = {
    "alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
    "chromium": "chromium",
    "pngquant": "pngquant",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "redis-server": "redis-server",
}
OTHER_NAMES = {"alertmanager": ("prometheus-alertmanager",), "chromium": ("chromium-browser",)}
"""What a program is called by Debian or Ubuntu, where that is not its own name."""

SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
"""Asked by Debian's packages before they start a service; 101 forbids it."""
NO_SERVICE = "#!/bin/sh\n# By otel-loopguard, while it installs; to be removed.\nexit 101\n"
FORBIDDEN = 101
TRIES = 5
PAUSE_S = 10
LIMIT_S = 900


class MissingProgramsError(RuntimeError):
    """Programs are not there and were not installed; the message says what to do."""


def programs(*names: str) -> dict[str, Path]:
    """Where each program is, by the name that was asked for; missing ones are installed first.

    Raises:
        MissingProgramsError: they cannot be installed here, or apt has failed.
        ValueError: a name is not in `PACKAGE_OF_PROGRAM`.

    """
    unknown = sorted(set(names) - PACKAGE_OF_PROGRAM.keys())
    if unknown:
        raise ValueError(
            f"no Debian package is known for {', '.join(map(repr, unknown))}: expected some of "
            f"{', '.join(PACKAGE_OF_PROGRAM)}; add it to PACKAGE_OF_PROGRAM"
        )
    if missing(names):
        with locked():
            packages = sorted({PACKAGE_OF_PROGRAM[name] for name in missing(names)})
            if packages:
                install(packages)
    still = missing(names)
    if still:
        raise MissingProgramsError(
            f"{', '.join(still)}: not on PATH although the package was installed; "
            f"expected it in one of {os.environ.get('PATH')!r}"
        )
    return {name: path for name in names if (path := find(name))}


def missing(names: Sequence[str]) -> list[str]:
    return [name for name in names if find(name) is None]


def find(name: str) -> Path | None:
    """The program on PATH, or where Debian puts servers, which a user's PATH may lack."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/bin", "/usr/sbin"])
    found = (shutil.which(each, path=path) for each in (name, *OTHER_NAMES.get(name, ())))
    return next((Path(each) for each in found if each), None)


@contextmanager
def locked() -> Generator[None]:
    """One of several workers installs, the others wait and find what it has installed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-loopguard"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "debian-packages.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(packages: Sequence[str]) -> None:
    by_hand = f"install them by hand: sudo apt-get install {shlex.join(packages)}"
    reason = why_not()
    if reason is not None:
        raise MissingProgramsError(
            f"packages missing: {', '.join(packages)}. They are not installed from here because "
            f"{reason}; {by_hand} (another system: have the programs on PATH)"
        )
    with services_kept_from_starting():
        # The lists of a fresh container are empty, and old ones may name what is no longer served.
        failure = apt_get("install", *packages)
        if failure is not None:
            apt_get("update")
            failure = apt_get("install", *packages)
    if failure is not None:
        raise MissingProgramsError(f"packages missing: {', '.join(packages)}. {failure}\n{by_hand}")


def why_not() -> str | None:
    """Why nothing is installed on this machine, or `None` if it may be."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    if os.geteuid() != 0:
        return "this is not root"
    if Path("/run/systemd/system").exists():
        return "systemd would start their services with the machine"
    if SERVICE_POLICY.exists() and not forbids_services():
        return f"{SERVICE_POLICY} lets their services start"
    return None


def forbids_services() -> bool:
    asked = subprocess.run([SERVICE_POLICY, "prometheus", "start"], check=False, timeout=30)
    return asked.returncode == FORBIDDEN


@contextmanager
def services_kept_from_starting() -> Generator[None]:
    if SERVICE_POLICY.exists():
        yield
        return
    SERVICE_POLICY.write_text(NO_SERVICE)
    SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        SERVICE_POLICY.unlink(missing_ok=True)


def apt_get(*arguments: str) -> str | None:
    """`None` when it went well, else what apt said; waits for whoever else uses apt just now."""
    command = [
        *("apt-get", "--quiet", "--yes", "--no-install-recommends"),
        *("-o", "DPkg::Lock::Timeout=300", *arguments),
    ]
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    said = ""
    for left in reversed(range(TRIES)):
        done = subprocess.run(
            command,
            check=False,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        if done.returncode == 0:
            return None
        said = f"{shlex.join(command)} has failed:\n{done.stdout[-2000:]}"
        if "Could not get lock" not in done.stdout or not left:
            break
        time.sleep(PAUSE_S)
    return said


if __name__ == "__main__":
    try:
        print(*programs(*sys.argv[1:]).values(), sep="\n")
    except (MissingProgramsError, ValueError) as error:
        sys.exit(str(error))
