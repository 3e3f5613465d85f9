"""How many requests a second the scripted model server answers on one core: `endless`, at once.

The server has a process and a core of its own, the clients another: raw sockets on kept
connections. Beside the requests a second of the clock stands what they cost the server's process
in CPU time, because the clock also counts what others do on this machine. What is asked is 1,000
requests a second; it ends with 1 where a second of the server's own time is not enough for them.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

ROUNDS = 7
REQUESTS = 1_000
"""In a round."""
CONNECTIONS = 4
LEAST = 1_000

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SERVER = """
import sys
import time
from otel_loopguard.testing import model_server
with model_server() as server:
    print(server.root, flush=True)
    for line in sys.stdin:
        print(time.process_time(), server.count(), flush=True)
"""


class Round(NamedTuple):
    """What one round took, in seconds."""

    wall_s: float
    cpu_s: float


def chat(turns: int) -> tuple[str, dict[str, object]]:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Find it."}]
    for turn in range(turns):
        call = {"id": f"call_{turn}", "type": "function"}
        function = {"name": "search", "arguments": '{"query":"alpha"}'}
        messages.append({"role": "assistant", "tool_calls": [{**call, "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": "nothing" * 20})
    tool = {"type": "function", "function": {"name": "search", "parameters": SCHEMA}}
    return "/v1/chat/completions", {"model": "m", "messages": messages, "tools": [tool]}


def responses() -> tuple[str, dict[str, object]]:
    tool = {"type": "function", "name": "search", "parameters": SCHEMA}
    return "/v1/responses", {"model": "m", "input": "Find it.", "tools": [tool]}


def messages() -> tuple[str, dict[str, object]]:
    tool = {"name": "search", "input_schema": SCHEMA}
    said = [{"role": "user", "content": "Find it."}]
    return "/v1/messages", {"model": "m", "max_tokens": 100, "messages": said, "tools": [tool]}


LOADS = {
    "chat completions, first turn": chat(0),
    "chat completions, turn 21": chat(20),
    "responses, first turn": responses(),
    "messages, first turn": messages(),
}


class Server:
    """The server's process, on a core of its own where there are two."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.address = urlsplit(process.stdout.readline().strip())

    def spent_s(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline().split()[0])


@contextmanager
def served() -> Generator[Server]:
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(  # noqa: S603 -- our own program
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        pin(process.pid, 0)
        pin(0, 1)
        try:
            yield Server(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def pin(process: int, place: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0)) if place == 0 else CORES
        os.sched_setaffinity(process, {cores[place % len(cores)]})


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def request_of(path: str, body: dict[str, object], host: str) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def read_answer(connection: socket.socket) -> None:
    received = connection.recv(65536)
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), received
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    assert b"search" in body, body


def play(server: Server, request: bytes) -> Round:
    host, port = server.address.hostname or "", server.address.port or 0
    connections = [socket.create_connection((host, port)) for _ in range(CONNECTIONS)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    spent_s, began_s = server.spent_s(), time.perf_counter()
    for _ in range(REQUESTS // CONNECTIONS):
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            read_answer(connection)
    wall_s = time.perf_counter() - began_s
    cpu_s = server.spent_s() - spent_s
    for connection in connections:
        connection.close()
    return Round(wall_s, cpu_s)


def main() -> int:
    print(f"{'':32}{'requests/s':>12}{'best':>8}{'us of CPU each':>16}{'at 100 % of a core':>20}")
    enough = True
    with served() as server:
        for name, (path, body) in LOADS.items():
            request = request_of(path, body, server.address.netloc)
            play(server, request)
            rounds = [play(server, request) for _ in range(ROUNDS)]
            cpu_s = statistics.median(each.cpu_s for each in rounds) / REQUESTS
            wall_s = [each.wall_s / REQUESTS for each in rounds]
            print(
                f"{name:32}{1 / statistics.median(wall_s):>12,.0f}{1 / min(wall_s):>8,.0f}"
                f"{cpu_s * 1e6:>16,.0f}{1 / cpu_s:>20,.0f}"
            )
            enough = enough and 1 / cpu_s >= LEAST
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
