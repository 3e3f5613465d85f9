"""A server on loopback that is posted to: what the stack tells people and services comes here."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def taking_posts(answer: Callable[[bytes], int]) -> Generator[str]:
    """Run a server until the block is left; yields its address.

    `answer` is called with the body of each request, in a thread of its own, and says the HTTP
    status of the answer.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(answer(body))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name
            """Say nothing: what came is there to be asked for."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
