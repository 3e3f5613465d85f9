"""A real Prometheus that watches the agents: `python -m dashboards.checks.watched --seconds 600`.

Prints its address, and stays up for so long. Alert rules are loaded where there are any.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import IO

from dashboards.checks.documents import DIRECTORY
from scripts.debian_packages import programs

READY_S = 60
STOP_S = 15
JOBS = ("agents", "agents-canary")
RULES = DIRECTORY / "alerting" / "rules"


@contextmanager
def watched(scrape_s: int = 1) -> Generator[str]:
    """The address of a Prometheus that fetches the agents' metrics every few seconds.

    Raises:
        RuntimeError: one of the two does not start; with what it has said.

    """
    program = programs("prometheus")["prometheus"]
    with TemporaryDirectory(prefix="loopguard-boards-") as made:
        home = Path(made)
        agents = [sys.executable, "-m", "dashboards.checks.agents"]
        with (home / "agents.log").open("w") as log, running(agents, log, subprocess.PIPE) as each:
            ports = (each.stdout.readline() if each.stdout else b"").decode().split()
            if not ports:
                raise RuntimeError(f"no agents: {(home / 'agents.log').read_text()}")
            (home / "prometheus.yml").write_text(configuration(ports, scrape_s), encoding="utf-8")
            address = f"127.0.0.1:{free_port()}"
            command = [
                str(program),
                f"--config.file={home / 'prometheus.yml'}",
                f"--storage.tsdb.path={home / 'data'}",
                f"--web.listen-address={address}",
                "--web.cors.origin=.*",  # pictures are drawn by a page from elsewhere
                "--enable-feature=exemplar-storage",
            ]
            with (
                (home / "prometheus.log").open("w") as said,
                running(command, said, None) as server,
            ):
                await_ready(f"http://{address}", server, home / "prometheus.log")
                yield f"http://{address}"


def configuration(ports: Sequence[str], scrape_s: int) -> str:
    rules = "".join(f"  - {path}\n" for path in sorted(RULES.glob("*.yaml")))
    return (
        f"global:\n  scrape_interval: {scrape_s}s\n  evaluation_interval: {scrape_s}s\n"
        + (f"rule_files:\n{rules}" if rules else "")
        + "scrape_configs:\n"
        + "".join(
            f"  - job_name: {job}\n    static_configs:\n      - targets: ['127.0.0.1:{port}']\n"
            for job, port in zip(JOBS, ports, strict=True)
        )
    )


@contextmanager
def running(
    command: Sequence[str], log: IO[str], output: int | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """A process that ends with the block."""
    to = log if output is None else output
    with subprocess.Popen(command, stdout=to, stderr=log, cwd=DIRECTORY.parent) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def await_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=1):  # noqa: S310 -- loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"Prometheus does not answer at {url}: {log.read_text()[-2000:]}")


def free_port() -> int:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def leave(_signal: int, _frame: object) -> None:
    """End by an exception, so that what was started ends as well."""
    sys.exit()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3600, help="how long it stays up")
    parser.add_argument("--scrape", type=int, default=5, help="seconds between fetches")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, leave)
    with watched(options.scrape) as url:
        print(url, flush=True)
        time.sleep(options.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
