"""Programs of the stack: each with a log of its own, stopped by its own process id."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.stack.http_client import is_ready
from scripts.stack.waiting import eventually

STOP_S = 10
"""How long a program has to end by itself before it is killed."""
SHOWN = 4_000
"""How many characters of a log are shown when its program has failed."""


class Program:
    """A program that runs: what it is called, its process and its log."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs."""
        return self._process.poll()

    def said(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-SHOWN:]

    def fault(self) -> str | None:
        """Why it is of no use to wait for it: it has ended."""
        if self.exit_code is None:
            return None
        return f"{self.name} has ended with {self.exit_code}; the end of its log:\n{self.said()}"

    def ends(self, within_s: float) -> int:
        """Wait for its end by itself; returns the exit code."""
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(
                f"{self.name} was to end within {within_s:g} s; the end of its log:\n{self.said()}"
            ) from error

    def stop(self) -> None:
        """End it: politely, then not."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    *,
    ready: str | None = None,
    within_s: float = 60,
) -> Generator[Program]:
    """Run a program until the block is left; `ready` is the address that answers when it is."""
    log = folder / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*map(str, command)],
            cwd=folder,
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )  # in the same session: Ctrl-C reaches it whatever becomes of who has started it
    program = Program(name, process, log)
    try:
        if ready is not None:
            address = ready
            eventually(
                f"{name} at {address}",
                lambda: is_ready(address),
                within_s=within_s,
                unless=program.fault,
            )
        yield program
    finally:
        program.stop()


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on just now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
