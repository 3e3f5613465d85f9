"""The error body that all OpenAI APIs share.

Source: the `error` object and the table of error codes in OpenAI's API reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_loopguard.testing.wire import JsonObject

_BY_STATUS: Mapping[int, tuple[str, str | None]] = MappingProxyType(
    {
        400: ("invalid_request_error", "scripted_model_refusal"),
        401: ("invalid_request_error", "invalid_api_key"),
        403: ("invalid_request_error", "unsupported_country_region_territory"),
        404: ("invalid_request_error", "model_not_found"),
        429: ("requests", "rate_limit_exceeded"),
    }
)
"""Type and code."""
_SERVER_ERRORS = 500


def error_body(status: int, message: str) -> JsonObject:
    """Write the body of an error with this HTTP status."""
    other = "server_error" if status >= _SERVER_ERRORS else "invalid_request_error"
    kind, code = _BY_STATUS.get(status, (other, None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
