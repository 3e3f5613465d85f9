"""Parts for testing an agent and its guard: a scripted model server and a telemetry receiver.

Needs the extra `testing`; the receiver needs the extra `otlp` besides, so import it from
`otel_loopguard.testing.otlp_receiver`.
"""

from __future__ import annotations

try:
    from otel_loopguard.testing.model_server import ModelRequest, ModelServer, model_server
except ModuleNotFoundError as error:
    if error.name not in ("starlette", "uvicorn"):
        raise
    raise ModuleNotFoundError(
        f"otel_loopguard.testing needs {error.name!r}; "
        "install it with: pip install 'otel-loopguard[testing]'",
        name=error.name,
    ) from error
from otel_loopguard.testing.scripts import SCRIPTS

__all__ = ["SCRIPTS", "ModelRequest", "ModelServer", "model_server"]
