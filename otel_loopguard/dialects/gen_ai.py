"""OpenTelemetry's GenAI semantic conventions, as they stood in November 2026 (0.1.0 and before).

Sources: the conventions' pages on inference, tool and agent spans; recordings of the OpenTelemetry
`genai` and `v2` packages (OpenAI, Anthropic, LangChain, OpenAI Agents, LlamaIndex, smolagents), of
Pydantic AI (formats 2 to 6), the Anthropic SDK, Semantic Kernel, Agent Framework, AutoGen, Vercel's
AI SDK 7, and of OpenLLMetry, whose model spans carry these names only; LangSmith's exporter.

Recognised by `gen_ai.operation.name`, else `llm.request.type` (OpenLLMetry before it took these
names), else by the first word of the span's name: some packages set no attribute when a span
starts, and a small attribute limit drops the oldest first.

- tool: `gen_ai.tool.name`, `.tool.call.id`, `.tool.call.arguments` and `.tool.call.result` (both
  opt-in; `tool_arguments` and `tool_response` in Pydantic AI's format 2, `gen_ai.prompt` and
  `gen_ai.completion` from LangSmith, `anthropic.tool_result.content` unless
  `anthropic.content.truncated`). Out of a tool message of LangChain its content is taken.
- llm: `gen_ai.request.model`, `.response.model`, `.provider.name` (once `.system`), `.response.id`,
  `.response.finish_reasons` (`.response.finish_reason`, `anthropic.message.stop_reason`,
  `gen_ai.completion.0.finish_reason`), `.usage.*` with the older names, `operation.cost` (Pydantic
  AI) and `.tool.definitions` (opt-in; with `llm.request.type` `llm.request.functions.0.name` and so
  on). The answer (opt-in) from `.output.messages`, else from what came before it:
  `gen_ai.completion`, the span events `gen_ai.choice`, `gen_ai.content.completion` and
  `gen_ai.client.inference.operation.details`, `gen_ai.completion.0.content` and so on. Calls whose
  results stand in the answer as well were run by the provider, and are not read.
- agent: `gen_ai.agent.name`, else `.workflow.name`; provider and model as for a model call;
  `.usage.*`, else `.aggregated_usage.*`: both sum up the calls below it.
- all: `gen_ai.agent.name`, `gen_ai.agent.call.id` (Pydantic AI).
- input of a model call, on demand, for each span repeats all of it: `.input.messages`, else
  `gen_ai.prompt`, the span events `gen_ai.*.message`, `gen_ai.content.prompt` and
  `gen_ai.client.inference.operation.details`, `gen_ai.prompt.0.content` and so on; besides
  `gen_ai.request.previous_response.id`, where the messages before it are not sent again.
"""

from __future__ import annotations

from otel_loopguard import semconv
from otel_loopguard.dialects._dialect import Dialect, Marks
from otel_loopguard.dialects._gen_ai import READERS, input_of, model_step, operation_of, step_of
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, StepKind

_VETOABLE: frozenset[tuple[str, StepKind]] = frozenset(
    {
        ("autogen-core", "tool"),
        ("opentelemetry.instrumentation.genai.anthropic", "llm"),
        ("opentelemetry.instrumentation.genai.openai", "llm"),
        ("opentelemetry.instrumentation.openai_v2", "llm"),
        ("pydantic-ai", "tool"),
        ("pydantic-ai", "llm"),
        ("semantic_kernel.functions.kernel_function", "tool"),
        ("semantic_kernel.utils.telemetry.model_diagnostics.decorators", "llm"),
    }
)
"""Scopes, and kinds of steps, whose spans let an exception out when they start: the Anthropic SDK,
and the packages for LangChain, LlamaIndex and the OpenAI Agents SDK, swallow it."""


def read_input(record: SpanRecord) -> ModelInput | None:
    """Return what is new in a model call's input; `None` if the span does not show it."""
    is_model_call = READERS.get(operation_of(record)) is model_step
    return input_of(record) if is_model_call else None


DIALECT = Dialect(
    name="gen_ai",
    read=step_of,
    read_input=read_input,
    marks=Marks(
        attributes=frozenset({semconv.GEN_AI_OPERATION_NAME, semconv.LLM_REQUEST_TYPE}),
        words=frozenset(READERS),
    ),
    vetoable=_VETOABLE,
)
