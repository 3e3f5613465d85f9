"""An ASGI application on loopback, served by uvicorn in a thread of its own.

The application's process keeps its signal handlers and its logging as they are.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.types import ASGIApp

_HOST = "127.0.0.1"
_LAST_PORT = 65535
_READY_S = 10.0
_DRAIN_S = 2  # how long requests in flight may take once the server is told to stop
_STOP_S = 10.0
_IDLE_S = 600  # clients hold connections for seconds, and one closed as they use it is an error
_POLL_S = 0.002


@contextmanager
def serving(app: ASGIApp, *, name: str, port: int = 0) -> Generator[str]:
    """Serve the application on a port of 127.0.0.1, a free one; yields the address of its root.

    Returns from the block only when the port is closed and the thread is over. Raises
    `RuntimeError` where the server does not start or does not stop within 10 seconds, `ValueError`
    for a port that cannot be, `OSError` for one that cannot be had.
    """
    if not 0 <= port <= _LAST_PORT:
        raise ValueError(
            f"port={port!r} is no port; expected 1 to {_LAST_PORT}, or 0 for any free one"
        )
    # With the protocol named, asyncio switches Nagle's algorithm off; else each answer waits 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        if os.name == "posix":  # elsewhere it would take a port that is in use
            # Connections of a server that is gone hold its port for a while, unless both say this.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
        listener.listen()
        server = uvicorn.Server(_configuration(app))
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name=name, daemon=True
        )
        thread.start()
        try:
            _wait_until_ready(server, thread, name)
            yield f"http://{_HOST}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(_STOP_S)
    if thread.is_alive():
        raise RuntimeError(f"{name} is still running {_STOP_S:g} s after it was told to stop")


def _configuration(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="auto",  # `httptools` where it is installed: it halves what an answer costs
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_DRAIN_S,
        timeout_keep_alive=_IDLE_S,
    )


def _wait_until_ready(server: uvicorn.Server, thread: threading.Thread, name: str) -> None:
    deadline = time.monotonic() + _READY_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() >= deadline:
            raise RuntimeError(
                f"{name} did not start on {_HOST} within {_READY_S:g} s; see its log"
            )
        time.sleep(_POLL_S)
