"""A tool runner of the `anthropic` client is stopped, and the conversation goes on."""

from __future__ import annotations

from anthropic import Anthropic, beta_tool
from anthropic.lib.tools import BetaToolRunner
from anthropic.types.beta import BetaMessageParam
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard import LoopGuardSpanProcessor, RunAborted
from otel_loopguard.integrations import anthropic
from otel_loopguard.testing import model_server

guard = LoopGuardSpanProcessor(mode="enforce")
anthropic.install(guard)

provider = TracerProvider()
provider.add_span_processor(guard)


@beta_tool
def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


with model_server() as server:
    client = Anthropic(
        base_url=server.root, api_key="none", open_telemetry={"tracer_provider": provider}
    )

    def runner(model: str, messages: list[BetaMessageParam]) -> BetaToolRunner:
        return client.beta.messages.tool_runner(
            model=model, max_tokens=100, messages=messages, tools=[search], thread=False
        )

    endless = runner("endless", [{"role": "user", "content": "How is the weather in Paris?"}])
    try:
        endless.until_done()
    except RunAborted as stopped:
        print(f"stopped by {stopped.report.rule} after {stopped.report.model_calls} model calls")
    history: list[BetaMessageParam] = []
    endless.set_messages_params(lambda params: history.extend(params["messages"]) or params)
    print(f"the history has {len(history)} messages")
    sensible = runner("finish3", [*history, {"role": "user", "content": "Look somewhere else."}])
    print(sensible.until_done().content[0].text)
