"""What a scripted model says next, as pure functions.

A script sees the tools that were offered and a count, nothing else: a fake that reacts to what it
is told would be a second implementation of the thing under test.
"""

from __future__ import annotations

from otel_loopguard.testing.scripts.calls import FINAL_ANSWER, NO_TOOLS, call_of
from otel_loopguard.testing.scripts.files import (
    ScriptFileError,
    read_script,
    script_from,
    script_of,
)
from otel_loopguard.testing.scripts.healthy import POLLS
from otel_loopguard.testing.scripts.names import (
    DESCRIPTIONS,
    SCRIPTS,
    find_script,
    script_named,
)
from otel_loopguard.testing.scripts.turns import (
    FinishReason,
    NoTurnError,
    OfferedTool,
    Play,
    Script,
    ScriptedCall,
    ScriptedError,
    Turn,
    Usage,
)

__all__ = [
    "DESCRIPTIONS",
    "FINAL_ANSWER",
    "NO_TOOLS",
    "POLLS",
    "SCRIPTS",
    "FinishReason",
    "NoTurnError",
    "OfferedTool",
    "Play",
    "Script",
    "ScriptFileError",
    "ScriptedCall",
    "ScriptedError",
    "Turn",
    "Usage",
    "call_of",
    "find_script",
    "read_script",
    "script_from",
    "script_named",
    "script_of",
]
