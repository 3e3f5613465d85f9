"""OpenInference's instrumentations, which are all put on alike."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from openinference.instrumentation import TraceConfig
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
from opentelemetry.sdk.trace import TracerProvider


@contextmanager
def openinference(
    *packages: BaseInstrumentor, provider: TracerProvider, content: bool
) -> Generator[None]:
    """Put packages on, and take them off again, the last one first."""
    config = TraceConfig(hide_inputs=not content, hide_outputs=not content)
    for package in packages:
        package.instrument(tracer_provider=provider, config=config)
    try:
        yield
    finally:
        for package in reversed(packages):
            package.uninstrument()
