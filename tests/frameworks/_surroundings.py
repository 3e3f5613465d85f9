"""What stands around an agent's run in an application."""

from __future__ import annotations

from types import TracebackType
from typing import TypeAlias

from opentelemetry.trace import TracerProvider

from otel_loopguard import guarded_run
from tests._zero_code import Surroundings


class OwnSpan:
    """A span of the application around a run, at places where a `guarded_run` block may stand."""

    def __init__(self, provider: TracerProvider, name: str) -> None:
        self._span = provider.get_tracer("application").start_as_current_span(name)

    def __enter__(self) -> None:
        self._span.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._span.__exit__(kind, error, traceback)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


Around: TypeAlias = guarded_run | OwnSpan


def around_of(surroundings: Surroundings, provider: TracerProvider, name: str) -> Around | None:
    """Return what a run is to have around it; a span of the application gets the name."""
    if surroundings == "guarded-run":
        return guarded_run()
    return OwnSpan(provider, name) if surroundings == "own-span" else None
