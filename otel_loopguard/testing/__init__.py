"""Parts for testing an agent and its guard: scripted models, in process and as a server; recording
tools, a clock that is moved by hand, and a telemetry receiver.

Each name is imported when it is first asked for, so that the doubles work with nothing but the
package itself. `model_server` needs the extra `testing`; the receiver needs the extra `otlp`
besides, so import it from `otel_loopguard.testing.otlp_receiver`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from otel_loopguard.testing._extra import extra_needed

if TYPE_CHECKING:
    from otel_loopguard.testing.capture import Capture
    from otel_loopguard.testing.double import ModelRefusedError
    from otel_loopguard.testing.fake_clock import FakeClock
    from otel_loopguard.testing.model_server import ModelRequest, ModelServer, model_server
    from otel_loopguard.testing.models import (
        EndlessModel,
        NoToolError,
        ScriptedModel,
        ScriptEndedError,
    )
    from otel_loopguard.testing.recording_tools import RecordingTool, ToolExecution, recording_tool
    from otel_loopguard.testing.scripts import SCRIPTS
    from otel_loopguard.testing.stops import assert_completes, assert_stops

__all__ = [
    "SCRIPTS",
    "Capture",
    "EndlessModel",
    "FakeClock",
    "ModelRefusedError",
    "ModelRequest",
    "ModelServer",
    "NoToolError",
    "RecordingTool",
    "ScriptEndedError",
    "ScriptedModel",
    "ToolExecution",
    "assert_completes",
    "assert_stops",
    "model_server",
    "recording_tool",
]

# One line for each name; `if TYPE_CHECKING` and `__all__` above have one for each as well.
_HOMES = {
    "Capture": "capture",
    "EndlessModel": "models",
    "FakeClock": "fake_clock",
    "ModelRefusedError": "double",
    "ModelRequest": "model_server",
    "ModelServer": "model_server",
    "NoToolError": "models",
    "RecordingTool": "recording_tools",
    "SCRIPTS": "scripts",
    "ScriptEndedError": "models",
    "ScriptedModel": "models",
    "ToolExecution": "recording_tools",
    "assert_completes": "stops",
    "assert_stops": "stops",
    "model_server": "model_server",
    "recording_tool": "recording_tools",
}
"""The module of each public name."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra_needed():
        home = import_module(f"{__name__}.{_HOMES[name]}")
    value: object = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """The package, in which a public name stays what it is here.

    The import system puts every module of a package there under its own name once it is imported.
    That of `model_server` would take the place of the function, for whoever asks for it next.
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, unless it would hide a public name behind the module of that name."""
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
