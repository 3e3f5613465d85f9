"""A small HTTP server for `/metrics`, in a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from otel_loopguard.forks import in_children

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_logger = logging.getLogger(__name__)

PATH = "/metrics"

_POLL_S = 0.1
"""How long a shutdown waits at most for the thread to notice."""

_CLIENT_TIMEOUT_S = 10
"""A client that sends no request, or does not read the answer, holds a thread for no longer."""


class MetricsServer:
    """Serves the metrics of a registry until it is closed.

    Args:
        registry: what is served.
        host: an address or a name of this machine.
        port: 0 takes a free one.

    Raises:
        OSError: if the host is none of this machine, or the port is taken or not allowed.
        OverflowError: if there is no such port.

    """

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._listener = _Listener(family, (str(address[0]), port))
        self._listener.set_app(_application(registry))
        self._open = True
        self._thread = threading.Thread(
            target=self._listener.serve_forever,
            args=(_POLL_S,),
            name="loopguard-prometheus",
            daemon=True,
        )
        self._thread.start()
        in_children(self, MetricsServer._leave_to_parent)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._listener.server_port

    def close(self) -> None:
        """Free the port; what is being answered is answered."""
        if self._open:
            self._open = False
            self._listener.shutdown()
            self._listener.server_close()

    def _leave_to_parent(self) -> None:
        """In a forked child, let go of the socket: no thread here answers, the parent does.

        Held here, it would keep the port when the parent is gone, and clients waiting for ever.
        """
        if self._open:
            self._open = False
            self._listener.socket.close()


class _Listener(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread, which does not keep the process alive."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, family: int, address: tuple[str, int]) -> None:
        self.address_family = family
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without asking the DNS for the host's full name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say quietly that a client has gone away."""
        _logger.debug("no answer to %r on %r", client_address, request, exc_info=True)


class _Handler(WSGIRequestHandler):
    timeout = _CLIENT_TIMEOUT_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Write no line per scrape."""


def _application(registry: CollectorRegistry) -> WSGIApplication:
    metrics: WSGIApplication = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"Metrics are at {PATH}\n".encode()]
        try:
            if environ["REQUEST_METHOD"] == "HEAD":
                return _head(metrics, environ, start_response)
            return metrics(environ, start_response)
        except Exception:
            _logger.exception("metrics could not be collected")
            start_response("500 Internal Server Error", [("Content-Type", "text/plain")])
            return [b"Metrics could not be collected: see the application's log\n"]

    return answer


def _head(
    metrics: WSGIApplication, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer as to GET, without the body."""
    said: list[tuple[str, list[tuple[str, str]]]] = []

    def note(status: str, headers: list[tuple[str, str]], _: object = None) -> Any:
        said.append((status, headers))

    body = b"".join(metrics({**environ, "REQUEST_METHOD": "GET"}, note))
    status, headers = said[-1]
    start_response(status, [*headers, ("Content-Length", str(len(body)))])
    return [b""]
