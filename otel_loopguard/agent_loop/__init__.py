"""A reference loop: asks a model, calls its tools, and ends in one of fourteen known ways.

- `loop`: the loop itself, a generator that does nothing on its own, so both ways to run it are one.
- `drivers`: `run_agent` and `run_agent_async`, which do what it asks for; `telemetry`: their spans.
- `attempts`: what it asks for, and what came of that; `calls`: those of one turn; `turns`.
- `bounds`: what may be begun; `endings`: how it ends, and which ending wins.
- `plan`: what it is given, and what is wrong with that; `tools`, `schema`: what arguments may be.
- `messages`, `results`: what models and callers see.
"""

from __future__ import annotations

from otel_loopguard.agent_loop.drivers import run_agent, run_agent_async
from otel_loopguard.agent_loop.endings import Ending
from otel_loopguard.agent_loop.messages import Message, TurnRequest
from otel_loopguard.agent_loop.plan import RunOptions
from otel_loopguard.agent_loop.results import AgentResult
from otel_loopguard.agent_loop.tools import Tool
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.steps import ToolCall

__all__ = [
    "AgentResult",
    "Ending",
    "Message",
    "ModelTurn",
    "RunOptions",
    "Tool",
    "ToolCall",
    "TurnRequest",
    "run_agent",
    "run_agent_async",
]
