"""Where the contract of an integration is tried: a server, a guard, and agents that remember."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import AbortHook, LoopGuardSpanProcessor, Policy
from otel_loopguard.testing import ModelServer
from tests.frameworks._framework import Job, Tool
from tests.frameworks._integrated import Ended, Integrated
from tests.frameworks._workbench import Counts, Recorder, traced


class Said(NamedTuple):
    """One turn of a conversation: what the caller got, and what it cost."""

    answer: str | None
    error: BaseException | None
    counts: Counts
    ended: str | None = None
    """How a stopped run says so that raises nothing."""


class Scene(Recorder):
    """Agents that remember, in front of one server, traced by one provider."""

    def __init__(
        self, integrated: Integrated, server: ModelServer, provider: TracerProvider
    ) -> None:
        super().__init__(server, provider)
        self.integrated = integrated

    def talk(self, way: str, *scripts: str, tools: Sequence[Tool] | None = None) -> list[Said]:
        """Hold a conversation: one turn for each script."""
        if way in self.integrated.awaited:
            return asyncio.run(self.talked(way, *scripts, tools=tools))
        said: list[Said] = []
        with self.integrated.blocking[way]() as conversation:
            for script in scripts:
                before, got = self.counts(script), Said(None, None, Counts(0, 0))
                try:
                    got = _got(conversation.ask(self._job(script, tools)))
                except Exception as error:  # noqa: BLE001 -- frameworks wrap what stopped them
                    got = got._replace(error=error)
                said.append(got._replace(counts=self.counts(script) - before))
        return said

    async def talked(
        self, way: str, *scripts: str, tools: Sequence[Tool] | None = None
    ) -> list[Said]:
        """Hold a conversation in the running task: one turn for each script."""
        said: list[Said] = []
        async with self.integrated.awaited[way]() as conversation:
            for script in scripts:
                before, got = self.counts(script), Said(None, None, Counts(0, 0))
                try:
                    got = _got(await conversation.ask(self._job(script, tools)))
                except asyncio.CancelledError as cancelled:  # the guard's last resort
                    got = got._replace(error=cancelled)
                except Exception as error:  # noqa: BLE001 -- frameworks wrap what stopped them
                    got = got._replace(error=error)
                said.append(got._replace(counts=self.counts(script) - before))
        return said

    def _job(self, script: str, tools: Sequence[Tool] | None) -> Job:
        return Job(script, self.server.url, self.tools(script) if tools is None else tools)


class Stage(NamedTuple):
    """Makes scenes of one integration in front of one server."""

    integrated: Integrated
    server: ModelServer

    @contextmanager
    def scene(self, *, content: bool = True) -> Generator[Scene]:
        """Trace the framework's agents, without a guard."""
        with traced(self.integrated.instrument, content=content) as provider:
            yield Scene(self.integrated, self.server, provider)

    @contextmanager
    def guarded(
        self,
        policy: Policy | None = None,
        *,
        content: bool = True,
        abort_hooks: Sequence[AbortHook] = (),
    ) -> Generator[Scene]:
        """Trace them with a guard that the integration asks."""
        with self.scene(content=content) as scene:
            guard = LoopGuardSpanProcessor(
                policy, mode="enforce", abort_hooks=abort_hooks, meter_provider=scene.meters
            )
            scene.provider.add_span_processor(guard)
            self.integrated.module.install(guard)
            try:
                yield scene
            finally:
                self.integrated.module.uninstall(guard)


def _got(answer: str | Ended) -> Said:
    nothing = Counts(0, 0)
    if isinstance(answer, Ended):
        return Said(None, None, nothing, ended=answer.by)
    return Said(answer, None, nothing)
