"""Another HTTP API on loopback, for tools that talk to something else than a model."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Notebook(NamedTuple):
    """Where the API is, and the paths of the requests that it has had, in order."""

    url: str
    paths: list[str]


@contextmanager
def notebook() -> Generator[Notebook]:
    """Answer every POST request with the same text, until the block is left."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name is http.server's
            self.rfile.read(int(self.headers["content-length"]))
            paths.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "4")
            self.end_headers()
            self.wfile.write(b"note")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Write nothing: the test looks at the paths."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield Notebook(f"http://127.0.0.1:{server.server_port}", paths)
        finally:
            server.shutdown()
            thread.join()
