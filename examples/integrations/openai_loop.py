"""A hand-written loop over the `openai` client is stopped, and the conversation goes on."""

from __future__ import annotations

import json

from openai import OpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, RunAborted, guarded_run
from otel_loopguard.integrations import openai
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
openai.install(guard)

provider = TracerProvider()
provider.add_span_processor(guard)
OpenAIInstrumentor().instrument(tracer_provider=provider)

SEARCH = {
    "type": "function",
    "name": "search",
    "description": "Search for a text.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def search(query: str) -> str:
    return f"nothing found for {query!r}"


def answer(client: OpenAI, model: str, history: list) -> str:
    """Let a model work until it answers. What it has done is in the history, whatever happens."""
    while True:
        turn = client.responses.create(model=model, input=history, tools=[SEARCH])
        history += turn.output
        calls = [item for item in turn.output if item.type == "function_call"]
        if not calls:
            return turn.output_text
        for call in calls:
            with openai.calling(call.name, call.arguments, call.call_id) as asked:
                refusal = asked.refusal
                asked.result = str(refusal) if refusal else search(**json.loads(call.arguments))
            done = {"type": "function_call_output", "call_id": call.call_id, "output": asked.result}
            history.append(done)


with model_server() as server, OpenAI(base_url=server.url, api_key="none") as client:
    history = [{"role": "user", "content": "How is the weather in Paris?"}]
    try:
        with guarded_run():
            answer(client, "endless", history)
    except RunAborted as stopped:
        print(f"stopped by {stopped.report.rule} after {stopped.report.model_calls} model calls")
    history = openai.answered(history)
    print(f"the history has {len(history)} items")
    history.append({"role": "user", "content": "Then look somewhere else."})
    with guarded_run():
        print(answer(client, "finish3", history))

OpenAIInstrumentor().uninstrument()
