"""The spans of a run, by OpenTelemetry's GenAI conventions: one of the agent, one for each attempt.

What was said, the arguments and the results are on them only where the conventions' own variable
asks for that. The spans of calls say that what is raised when they start keeps the call from being
made, so that a `LoopGuardSpanProcessor` can do that.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, cast

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from otel_loopguard import semconv
from otel_loopguard.agent_loop.attempts import Attempt, ModelAttempt, ToolAttempt
from otel_loopguard.agent_loop.messages import Message, described, text_of
from otel_loopguard.agent_loop.plan import Plan
from otel_loopguard.agent_loop.results import AgentResult
from otel_loopguard.agent_loop.tools import Tool
from otel_loopguard.agent_loop.turns import reason_of
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.registry import names
from otel_loopguard.version import VERSION

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = frozenset(("SPAN_ONLY", "SPAN_AND_EVENT"))
_TOOL = "execute_tool"
_SCOPE = "otel_loopguard.agent_loop"
_logger = logging.getLogger(__name__)


class Spans:
    """Makes the spans of one run."""

    __slots__ = ("_plan", "_shows_content", "_tracer")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shows_content = os.environ.get(CONTENT, "").upper() in _ON_SPANS
        self._tracer = trace.get_tracer(_SCOPE, VERSION, plan.tracer_provider)

    @contextmanager
    def of_run(self) -> Generator[Span]:
        """Make the span of the agent around a block, or none where a span processor forbids it.

        What is raised when it starts or ends is of no attempt: there is nobody to tell it to.
        """
        opened = self._open("invoke_agent", self._plan.agent, SpanKind.INTERNAL)
        try:
            span = opened.__enter__()
        except Exception:
            _logger.exception("the agent's span could not be started; the run goes on without it")
            yield trace.INVALID_SPAN
            return
        try:
            yield span
        except BaseException as error:
            opened.__exit__(type(error), error, error.__traceback__)
            raise
        try:
            opened.__exit__(None, None, None)
        except Exception:
            _logger.exception("the agent's span could not be ended")

    @contextmanager
    def of(self, attempt: Attempt) -> Generator[Span]:
        """Make the span of an attempt around a block."""
        if isinstance(attempt, ModelAttempt):
            asked = self._asked(attempt)
            with self._open("chat", self._plan.model_name, SpanKind.CLIENT, asked) as span:
                yield span
        else:
            called = self._called(attempt)
            # A span has no name that a model has made up.
            name = attempt.call.name if attempt.call.name in attempt.tools else ""
            with self._open(_TOOL, name, SpanKind.INTERNAL, called) as span:
                yield span

    def show(self, span: Span, attempt: Attempt, value: object) -> None:
        """Write on a span what came of its attempt."""
        if isinstance(attempt, ToolAttempt):
            if self._shows_content:
                span.set_attribute(semconv.GEN_AI_TOOL_CALL_RESULT, text_of(value))
            return
        turn = cast("ModelTurn", value)
        span.set_attribute(semconv.GEN_AI_RESPONSE_FINISH_REASONS, [reason_of(turn)])
        span.set_attribute(semconv.GEN_AI_USAGE_INPUT_TOKENS, turn.input_tokens)
        span.set_attribute(semconv.GEN_AI_USAGE_OUTPUT_TOKENS, turn.output_tokens)
        if self._shows_content:
            said = Message(role="assistant", text=turn.text, calls=turn.calls)
            answer = {**_shown(said), "finish_reason": reason_of(turn)}
            span.set_attribute(semconv.GEN_AI_OUTPUT_MESSAGES, text_of([answer]))

    @staticmethod
    def end(span: Span, result: AgentResult) -> None:
        """Write on the span of the agent how its run ended."""
        if result.ending != "complete":
            span.set_attribute(semconv.ERROR_TYPE, result.ending)
            span.set_status(Status(StatusCode.ERROR, result.ending))

    @contextmanager
    def _open(
        self, operation: str, name: str, kind: SpanKind, more: Mapping[str, Any] | None = None
    ) -> Generator[Span]:
        attributes = {
            semconv.GEN_AI_OPERATION_NAME: operation,
            semconv.GEN_AI_AGENT_NAME: self._plan.agent,
            **(more or {}),
        }
        if self._plan.provider_name and operation != _TOOL:
            attributes[semconv.GEN_AI_PROVIDER_NAME] = self._plan.provider_name
        with self._tracer.start_as_current_span(
            f"{operation} {name}".strip(),
            kind=kind,
            attributes=attributes,
            record_exception=False,  # its text may be content
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute(semconv.ERROR_TYPE, type(error).__qualname__)
                text = described(error) if self._shows_content else type(error).__qualname__
                span.set_status(Status(StatusCode.ERROR, text))
                raise

    def _asked(self, attempt: ModelAttempt) -> dict[str, Any]:
        plan, request = self._plan, attempt.request
        asked: dict[str, Any] = {names.VETOABLE: True}
        if plan.model_name:
            asked[semconv.GEN_AI_REQUEST_MODEL] = plan.model_name
        if request.max_output_tokens is not None:
            asked[semconv.GEN_AI_REQUEST_MAX_TOKENS] = request.max_output_tokens
        if self._shows_content:
            asked[semconv.GEN_AI_INPUT_MESSAGES] = text_of([*map(_shown, request.messages)])
            asked[semconv.GEN_AI_TOOL_DEFINITIONS] = text_of([*_definitions(request.tools)])
        return asked

    def _called(self, attempt: ToolAttempt) -> dict[str, Any]:
        call = attempt.call
        called: dict[str, Any] = {
            names.VETOABLE: True,
            semconv.GEN_AI_TOOL_NAME: attempt.label,
            semconv.GEN_AI_TOOL_CALL_ID: attempt.call_id,
        }
        if self._shows_content:
            called[semconv.GEN_AI_TOOL_CALL_ARGUMENTS] = text_of(call.arguments)
        return called


def _shown(message: Message) -> dict[str, Any]:
    """Return a message as the conventions write it."""
    if message.role == "tool":
        answered = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        return {"role": "tool", "parts": [answered]}
    parts: list[dict[str, Any]] = []
    if message.text:
        parts.append({"type": "text", "content": message.text})
    for call in message.calls:
        asked = {"id": call.call_id, "name": call.name, "arguments": call.arguments}
        parts.append({"type": "tool_call", **asked})
    return {"role": message.role, "parts": parts}


def _definitions(tools: Iterable[Tool]) -> Generator[dict[str, Any]]:
    for tool in tools:
        said = {"description": tool.description, "parameters": tool.parameters}
        yield {"type": "function", "name": tool.name, **said}
