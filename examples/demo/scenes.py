"""What the demo plays, and what each run is known to have cost, whatever the telemetry says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from frameworks import Framework, Tools, instrumented
from openai import AsyncOpenAI
from telemetry import providers

from otel_loopguard.abort import abort_of
from otel_loopguard.testing import ModelRequest, ModelServer, model_server

if TYPE_CHECKING:
    from otel_loopguard.decisions import RunReport
    from otel_loopguard.testing.otlp_receiver import OtlpReceiver

RUNAWAY, HEALTHY = "runaway", "healthy"
SCRIPTS = {RUNAWAY: "endless", HEALTHY: "finish3"}
SAFETY_CAP = 200  # so that the demo ends even if every limit fails


class Run(NamedTuple):
    """One run of one agent, as its caller, its tools and its model server saw it."""

    agent: str
    answer: str | None
    error: BaseException | None
    report: RunReport | None
    """The guard's report, where the guard stopped the run."""
    tool_executions: int
    requests: tuple[ModelRequest, ...]

    @property
    def model_calls(self) -> int:
        return len(self.requests)

    @property
    def input_tokens(self) -> int:
        return sum(request.usage.input_tokens for request in self.requests if request.usage)

    @property
    def output_tokens(self) -> int:
        return sum(request.usage.output_tokens for request in self.requests if request.usage)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Scene(NamedTuple):
    """The runs of one framework under one set of providers."""

    framework: Framework
    guarded: bool
    service: str
    runs: tuple[Run, ...]

    def run_of(self, agent: str) -> Run:
        return next(run for run in self.runs if run.agent == agent)


def play(framework: Framework, receiver: OtlpReceiver, *, guarded: bool) -> Scene:
    """Play the runaway alone, or under the guard with the healthy agent beside it."""
    service = f"{framework.name}, {'guarded' if guarded else 'unguarded'}"
    agents = (RUNAWAY, HEALTHY) if guarded else (RUNAWAY,)
    with (
        model_server(cap=SAFETY_CAP) as server,
        providers(service, receiver.url, guarded=guarded) as sinks,
        instrumented(framework, sinks),
    ):
        runs = asyncio.run(play_together(framework, server, agents))
    return Scene(framework, guarded, service, tuple(runs))


async def play_together(
    framework: Framework, server: ModelServer, agents: tuple[str, ...]
) -> list[Run]:
    """Run the agents at the same time, in one process."""
    async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
        return await asyncio.gather(
            *(play_one(framework, server, client, agent) for agent in agents)
        )


async def play_one(
    framework: Framework, server: ModelServer, client: AsyncOpenAI, agent: str
) -> Run:
    tools = Tools()
    script = SCRIPTS[agent]
    answer: str | None = None
    error: Exception | None = None
    try:
        answer = await framework.run(agent, script, tools, client)
    except Exception as caught:  # noqa: BLE001  whatever ends the run is what the demo shows
        error = caught
    aborted = abort_of(error) if error else None
    return Run(
        agent=agent,
        answer=answer,
        error=error,
        report=aborted.report if aborted else None,
        tool_executions=tools.executions,
        requests=tuple(each for each in server.requests if each.script == script),
    )
