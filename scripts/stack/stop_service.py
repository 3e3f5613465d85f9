"""Who a guard's webhook asks to stop a run: down at first, and able to stop it once it is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Literal

State = Literal["down", "hanging", "up"]
HANGS_S = 3


class StopService:
    """The service: its address, whether it is up, and how often it was asked."""

    def __init__(self, url: str, stop: Callable[[], object]) -> None:
        self.url = url
        self.state: State = "down"
        self.asked = 0
        self._stop = stop

    def answer(self) -> int:
        """Stop the run, if the service is up; returns the HTTP status."""
        self.asked += 1
        if self.state == "hanging":
            time.sleep(HANGS_S)
        if self.state != "up":
            return 503
        self._stop()
        return 204


@contextmanager
def stop_service(stop: Callable[[], object]) -> Generator[StopService]:
    """Run a service until the block is left; `stop` is called when it is asked while it is up."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(service.answer())
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: `asked` tells."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service = StopService(f"http://127.0.0.1:{server.server_port}/", stop)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
