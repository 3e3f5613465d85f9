"""A receiver of Alertmanager's webhooks on loopback, which remembers when each page came."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import msgspec


class _Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    fingerprint: str


class _Notification(msgspec.Struct, frozen=True, kw_only=True):
    receiver: str
    alerts: list[_Told]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What one notification said of one alert, and when it came."""

    at: float
    """Seconds since 1970."""
    receiver: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    fingerprint: str

    @property
    def alert(self) -> str:
        return self.labels["alertname"]


class Pager:
    """The receiver: its address, and the pages so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pages: list[Page] = []
        self._lock = Lock()

    def pages(self, **labels: str) -> list[Page]:
        """The pages whose alert has these labels, oldest first."""
        with self._lock:
            return [page for page in self._pages if labels.items() <= page.labels.items()]

    def told(self, body: bytes) -> None:
        """Take a notification in."""
        now = time.time()
        notification = msgspec.json.decode(body, type=_Notification)
        with self._lock:
            self._pages.extend(
                Page(
                    at=now,
                    receiver=notification.receiver,
                    status=each.status,
                    labels=each.labels,
                    annotations=each.annotations,
                    fingerprint=each.fingerprint,
                )
                for each in notification.alerts
            )


@contextmanager
def pager() -> Generator[Pager]:
    """Run a receiver until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.told(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: the pages are there to be asked for."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Pager(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
