"""An OTLP/HTTP receiver on loopback that keeps what arrives.

    with otlp_receiver() as receiver:
        exporter = OTLPSpanExporter(endpoint=f"{receiver.url}/v1/traces")
        ...
        assert [span.name for span in receiver.spans] == ["invoke_agent"]

It takes protobuf bodies, plain or with gzip, for traces, metrics and logs.

Source: the OTLP/HTTP section of the OpenTelemetry protocol specification.
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from otel_loopguard.testing._extra import extra_needed
from otel_loopguard.testing.received import (
    ReceivedLog,
    ReceivedPoint,
    ReceivedSpan,
    read_logs,
    read_points,
    read_spans,
)

with extra_needed():
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    from otel_loopguard.testing._loopback import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from starlette.requests import Request

_PROTOBUF = "application/x-protobuf"
_DECODERS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"identity": bytes, "gzip": gzip.decompress}
)
_Export = TypeVar("_Export", bound=Message)


class OtlpReceiver:
    """A running receiver: where it is, and what has arrived."""

    def __init__(self, url: str, inbox: _Inbox) -> None:
        """Read the inbox that the receiver at this address fills."""
        self.url = url
        """The root address; exporters add `/v1/traces`, `/v1/metrics` or `/v1/logs`."""
        self._inbox = inbox

    @property
    def trace_requests(self) -> list[ExportTraceServiceRequest]:
        """The trace messages so far, as they were sent."""
        return list(self._inbox.traces)

    @property
    def metric_requests(self) -> list[ExportMetricsServiceRequest]:
        """The metric messages so far, as they were sent."""
        return list(self._inbox.metrics)

    @property
    def log_requests(self) -> list[ExportLogsServiceRequest]:
        """The log messages so far, as they were sent."""
        return list(self._inbox.logs)

    @property
    def spans(self) -> list[ReceivedSpan]:
        """The spans so far, in the order of arrival."""
        return [span for request in self.trace_requests for span in read_spans(request)]

    @property
    def metrics(self) -> list[ReceivedPoint]:
        """Every metric point of every export so far, in the order of arrival."""
        return [point for request in self.metric_requests for point in read_points(request)]

    @property
    def logs(self) -> list[ReceivedLog]:
        """The log records so far, in the order of arrival."""
        return [log for request in self.log_requests for log in read_logs(request)]


@contextmanager
def otlp_receiver() -> Generator[OtlpReceiver]:
    """Receive OTLP over HTTP on a free port of 127.0.0.1 until the block is left.

    A path may begin with what vendors put before it, as in `/api/public/otel/v1/traces`.
    A body that is no protobuf message of its path is answered with HTTP 400, another content type
    or encoding with 415, as the protocol asks.
    """
    inbox = _Inbox()
    with serving(inbox.application(), name="loopguard-otlp-receiver") as root:
        yield OtlpReceiver(root, inbox)


class _Inbox:
    """What has arrived."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                _route("/v1/traces", ExportTraceServiceRequest, self.traces),
                _route("/v1/metrics", ExportMetricsServiceRequest, self.metrics),
                _route("/v1/logs", ExportLogsServiceRequest, self.logs),
            ]
        )


def _route(path: str, kind: type[_Export], arrived: list[_Export]) -> Route:
    async def take(request: Request) -> Response:
        content_type = request.headers.get("content-type", "")
        if content_type != _PROTOBUF:
            return _refusal(415, f"content type {content_type!r}; expected {_PROTOBUF!r}")
        encoding = request.headers.get("content-encoding", "identity")
        if encoding not in _DECODERS:
            return _refusal(415, f"encoding {encoding!r}; expected one of {sorted(_DECODERS)!r}")
        try:
            message = kind.FromString(_DECODERS[encoding](await request.body()))
        except (DecodeError, OSError, EOFError, zlib.error) as error:
            return _refusal(400, f"no {kind.__name__} in the body: {error}")
        arrived.append(message)
        # All responses of the protocol are empty messages where everything was accepted.
        return Response(b"", media_type=_PROTOBUF)

    return Route(f"/{{above:path}}{path.removeprefix('/')}", take, methods=["POST"])


def _refusal(status: int, message: str) -> Response:
    return PlainTextResponse(message, status)
