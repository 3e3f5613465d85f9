"""The error body that all OpenAI APIs share.

Source: the `error` object in OpenAI's API reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_loopguard.testing.wire import JsonObject


def error_body(message: str) -> JsonObject:
    """Write the body of a refusal that clients do not retry."""
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": None,
            "code": "scripted_model_refusal",
        }
    }
