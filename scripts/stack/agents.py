"""Agents of the stack: real ones, in processes of their own, under `opentelemetry-instrument`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from scripts.environment import find_pythons, ready
from scripts.stack.programs import Program, running

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples" / "stack" / "agent.py"
"""The agent that knows nothing of tracing, nor of a guard."""
HOOKED = Path(__file__).parent / "agent_with_hook.py"
"""The same, and a few lines that install a guard with a hook."""
DOUBLES = ("-m", "scripts.stack.doubles")
"""Acted agents, for what real ones do not do when they are asked to."""

TOLD_MS = 1000
"""How often an agent tells its metrics: often enough for rules whose windows are seconds."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that is to be started."""

    service: str
    instance: str = "1"
    model_url: str
    """Where its model is, with `/v1`."""
    arguments: tuple[str | Path, ...] = (PROGRAM,)
    """Those of the interpreter."""
    variables: Mapping[str, str] = {}


def running_agent(agent: Agent, folder: Path, collector: str) -> AbstractContextManager[Program]:
    """Run an agent until the block is left; `collector` is the address of its OTLP over HTTP."""
    programs = environment()
    instrument = programs / "opentelemetry-instrument"
    command = [instrument, programs / "python", *agent.arguments]
    variables = {
        "OTEL_SERVICE_NAME": agent.service,
        "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={agent.service}-{agent.instance}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRIC_EXPORT_INTERVAL": str(TOLD_MS),
        "OTEL_BSP_SCHEDULE_DELAY": "500",
        # Without arguments and results on the spans the guard sees little.
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OPENAI_BASE_URL": agent.model_url,
        "PYTHONPATH": str(ROOT),
        # The environment has them compiled already: a framework takes seconds to import.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(programs.parent / "bytecode"),
        **agent.variables,
    }
    name = f"{agent.service}-{agent.instance}"
    return running(name, command, folder, variables)


@functools.cache
def environment() -> Path:
    """The folder of programs of the environment that has the framework and its instrumentation."""
    return ready("demo", find_pythons()[-1]) / "bin"
