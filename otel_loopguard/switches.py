"""What makes an instrumentation show more: its switches, by the scopes of its spans.

Where no switch is known, nothing is made up: the field is empty. Each row says from where it is
known; the recordings are those of `tests/testdata/traces`, made in November 2026.
"""

from __future__ import annotations

import msgspec

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_LATEST = "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
_AGENTS_SDK = "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true"
_CLIENT = (
    "instrument the client of the model as well, such as `OpenAIInstrumentor().instrument()` of "
    "opentelemetry-instrumentation-genai-openai"
)
_VERCEL = "recordInputs: true, recordOutputs: true in the telemetry settings of the call"
_UTIL_GENAI = "opentelemetry-util-genai 1.3b0: environment_variables.py, utils.py; recordings"
_TRACELOOP_SOURCE = "the packages' utils.py (0.62); recordings with and without content"
_OPENINFERENCE_SOURCE = "OpenInference's configuration page; recordings langchain-oi(-nocontent)"

GENAI_CONTENT = f"{_CAPTURE}=SPAN_ONLY"
"""The switch of OpenTelemetry's own packages; `true` is no value of it."""
TRACELOOP_CONTENT = "TRACELOOP_TRACE_CONTENT=true, which is what it is unless somebody set it"
OPENINFERENCE_CONTENT = "OPENINFERENCE_HIDE_INPUTS=false, OPENINFERENCE_HIDE_OUTPUTS=false"
ATTRIBUTE_COUNT = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=1000"
VALUE_LENGTH = (
    "unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT, and "
    "`max_span_attribute_length` of SpanLimits"
)
SAMPLER = "OTEL_TRACES_SAMPLER=loopguard, or otel_loopguard.record_dropped(provider)"
STREAMED_USAGE = (
    'where answers are streamed, ask for it: `stream_options={"include_usage": True}` in OpenAI\'s '
    "Chat API"
)
RUN_BLOCK = "`with otel_loopguard.guarded_run():` around each run"
MODEL_CALLS = _CLIENT


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """What an instrumentation shows only if it is told to."""

    scope: str
    """What the names of its scopes are, or begin with if it ends in a dot."""
    content: str = ""
    """What puts arguments, results and messages on its spans."""
    models: str = ""
    """What shows the model calls, where it has no spans for them itself."""
    source: str
    """From where this is known."""


def _traceloop(name: str, *, models: str = "") -> Switch:
    return Switch(
        scope=f"opentelemetry.instrumentation.{name}",
        content=TRACELOOP_CONTENT,
        models=models,
        source=_TRACELOOP_SOURCE,
    )


SWITCHES: tuple[Switch, ...] = (
    Switch(
        scope="opentelemetry.instrumentation.genai.",
        content=GENAI_CONTENT,
        models=_CLIENT,
        source=_UTIL_GENAI,
    ),
    Switch(
        scope="opentelemetry.instrumentation.openai_v2",
        content=f"{_LATEST}, {GENAI_CONTENT}",
        source="recordings raw-openai-*-v2; without the first, content goes to log events only",
    ),
    Switch(
        scope="opentelemetry.instrumentation.openai_agents",
        content=(
            f"{_AGENTS_SDK}; of OpenLLMetry's package {TRACELOOP_CONTENT}; of OpenTelemetry's "
            "OTEL_INSTRUMENTATION_OPENAI_AGENTS_CAPTURE_CONTENT, which must not say no_content"
        ),
        models=_CLIENT,
        source="openai-agents 0.24: run_config.py; recordings openai-agents-(tl|v2)-nocontent; two "
        "packages write under this scope",
    ),
    _traceloop("agno", models=_CLIENT),
    _traceloop("anthropic"),
    _traceloop("crewai.", models=_CLIENT),
    _traceloop("langchain"),
    _traceloop("llamaindex", models=_CLIENT),
    _traceloop("mcp"),
    _traceloop("openai."),
    Switch(
        scope="opentelemetry.instrumentation.ag2",
        content="`TelemetryMiddleware(capture_content=True)`",
        source="AG2 1.2: TelemetryMiddleware; recordings with and without content",
    ),
    Switch(
        scope="openinference.instrumentation.",
        content=OPENINFERENCE_CONTENT,
        models=_CLIENT.replace(
            "opentelemetry-instrumentation-genai-openai", "openinference-instrumentation-openai"
        ),
        source=_OPENINFERENCE_SOURCE,
    ),
    Switch(
        scope="openinference.instrumentation.openai_agents",
        content=f"{OPENINFERENCE_CONTENT}, {_AGENTS_SDK}",
        source=f"openai-agents 0.24: run_config.py; {_OPENINFERENCE_SOURCE}",
    ),
    Switch(
        scope="openinference.instrumentation.google_adk",
        content=OPENINFERENCE_CONTENT,
        models="leave this package out: with ADK 2 it writes over the model calls that ADK's own "
        "spans show",
        source="recordings google-adk-openinference, beside google-adk-native",
    ),
    Switch(
        scope="openinference.instrumentation.claude_agent_sdk",
        content=OPENINFERENCE_CONTENT,
        models="CLAUDE_CODE_ENABLE_TELEMETRY=1, CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1, "
        "OTEL_TRACES_EXPORTER=otlp for the command line, which makes the model calls: their spans "
        "leave that process, and reach files but no guard in this one",
        source="Claude Code's page on monitoring; recordings claude-agent-sdk-cli-otel",
    ),
    Switch(
        scope="otel_loopguard.agent_loop",
        content=GENAI_CONTENT,
        source="agent_loop/telemetry.py; tests/telemetry/test_run_agent.py",
    ),
    Switch(
        scope="pydantic-ai",
        content="`Agent.instrument_all(InstrumentationSettings(include_content=True))`",
        source="recordings pydantic-ai-v5(-nocontent); it is the default",
    ),
    Switch(
        scope="com.anthropic.sdk.",
        content="ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
        source="anthropic 2.14: _tracing.py; recordings raw-anthropic-native(-nocontent)",
    ),
    Switch(
        scope="com.anthropic.claude_code.tracing",
        content="OTEL_LOG_TOOL_DETAILS=1, OTEL_LOG_TOOL_CONTENT=1",
        source="Claude Code's page on monitoring; not recorded",
    ),
    Switch(
        scope="gcp.vertex.agent",
        content=(
            f"{_LATEST}, {_CAPTURE}=SPAN_AND_EVENT; with its first schema "
            "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"
        ),
        source="recordings google-adk-native, -semconv and -legacy of ADK 2.13",
    ),
    Switch(
        scope="agent_framework",
        content="ENABLE_SENSITIVE_DATA=true",
        source="its page on observability; recordings msagentframework-native and -sensitive",
    ),
    Switch(
        scope="semantic_kernel.",
        content="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
        source="recordings semantickernel-native and -sensitive",
    ),
    Switch(
        scope="autogen-core",
        content="none of its own; `AutogenAgentChatInstrumentor().instrument()` of "
        "openinference-instrumentation-autogen-agentchat writes them",
        models="`AutogenAgentChatInstrumentor().instrument()` of "
        "openinference-instrumentation-autogen-agentchat",
        source="autogen_core/_telemetry/_genai.py; recordings autogen-native, -openinference",
    ),
    Switch(scope="ai", content=_VERCEL, source="recordings vercel-ai-v6(-nocontent)"),
    Switch(scope="gen_ai", content=_VERCEL, source="recordings vercel-ai-v7(-nocontent)"),
    Switch(
        scope="haystack",
        content="HAYSTACK_CONTENT_TRACING_ENABLED=true, before Haystack is imported",
        source="recording haystack-native; without it model calls show nothing at all",
    ),
    Switch(
        scope="langsmith",
        content="LANGSMITH_HIDE_INPUTS=false, LANGSMITH_HIDE_OUTPUTS=false",
        source="langsmith 0.15: client.py; not recorded",
    ),
    Switch(
        scope="mcp-python-sdk",
        models="instrument what asks the model: a protocol's spans show its tools only",
        source="mcp 2.3: shared/_otel.py, server/_otel.py have no switch for arguments",
    ),
)


def switch_of(scope: str) -> Switch | None:
    """Return the switches of the instrumentation that has this scope; the longest name counts."""
    found = [each for each in SWITCHES if _is_meant(each.scope, scope)]
    return max(found, key=lambda each: len(each.scope), default=None)


def content_switch(scope: str) -> str:
    """Return what puts content on the spans of a scope; "" if that is not known."""
    switch = switch_of(scope)
    return "" if switch is None else switch.content


def _is_meant(name: str, scope: str) -> bool:
    return scope.startswith(name) if name.endswith(".") else scope == name
