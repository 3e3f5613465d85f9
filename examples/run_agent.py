"""The reference loop, without a network: one run that completes, and one that runs in circles."""

from __future__ import annotations

from otel_loopguard import ModelTurn, Tool, ToolCall, TurnRequest, run_agent


def search(query: str) -> str:
    return f"nothing found for {query!r}"


def ask(request: TurnRequest) -> ModelTurn:
    """Answer as a model would that searches once; yours would ask a provider here."""
    if request.messages[-1].role == "tool":
        return ModelTurn(text="I have found nothing.", finish_reason="stop")
    return ModelTurn(calls=(ToolCall(name="search", arguments={"query": "Paris"}),))


def ask_again(_: TurnRequest) -> ModelTurn:
    """Answer as a model would that never gives up."""
    return ModelTurn(calls=(ToolCall(name="search", arguments={"query": "Paris"}),))


tools = [
    Tool(
        name="search",
        call=search,
        description="Searches the web.",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string", "minLength": 1}},
            "required": ["query"],
            "additionalProperties": False,
        },
    )
]

for model in (ask, ask_again):
    result = run_agent(model, "How is the weather in Paris?", tools)
    print(
        f"{result.ending}: {result.model_calls} model calls, {result.tool_calls} tool calls, "
        f"rule {result.report.rule}, output {result.output!r}"
    )
