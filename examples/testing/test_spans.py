"""An agent whose calls are spans, as instrumentations make them, and a guard of one line."""

from __future__ import annotations

from contextlib import AbstractContextManager

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span

import otel_loopguard
from otel_loopguard.testing import Capture, EndlessModel, recording_tool

trace.set_tracer_provider(TracerProvider())
otel_loopguard.install(mode="enforce")  # without this line the test fails, and says why

tracer = trace.get_tracer("shop")


@recording_tool
def lookup(order: int) -> str:
    return f"order {order}: not yet"


def span(operation: str, **names: str) -> AbstractContextManager[Span]:
    said = {f"gen_ai.{key}.name": name for key, name in names.items()}
    # What is raised when these spans start keeps their calls from being made: so stop them there.
    attributes = {"gen_ai.operation.name": operation, "loopguard.vetoable": True, **said}
    return tracer.start_as_current_span(operation, attributes=attributes)


def agent(model: EndlessModel) -> str:
    with span("invoke_agent", agent="shop"):
        while True:
            with span("chat"):
                turn = model("Where is order 7?")
            if not turn.calls:
                return turn.text
            for call in turn.calls:
                with span("execute_tool", tool=call.name) as own:
                    own.set_attribute("gen_ai.tool.call.arguments", '{"order": 7}')
                    own.set_attribute("gen_ai.tool.call.result", lookup(order=7))


def test_the_guard_stops_the_agent(loopguard: Capture) -> None:
    model = EndlessModel("lookup", {"order": 7})
    loopguard.assert_stops(
        lambda: agent(model), rule="repeated_result", model_calls=5, model=model, tools=[lookup]
    )
