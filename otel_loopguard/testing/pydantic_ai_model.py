"""A double as a model of Pydantic AI: a `FunctionModel` with exact usage and finish reasons."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from opentelemetry.trace import TracerProvider
from pydantic_ai import RunContext
from pydantic_ai.messages import (
    FinishReason,
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage
from typing_extensions import override

from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing.call_arguments import arguments_object, arguments_text
from otel_loopguard.testing.double import Double, let_others_run
from otel_loopguard.testing.finish_reasons import Meaning, meaning_of
from otel_loopguard.testing.scripts import OfferedTool
from otel_loopguard.testing.wire import halves

_FINISH_REASONS: dict[Meaning, FinishReason] = {
    "content_filter": "content_filter",
    "length": "length",
    "stop": "stop",
    "tool_calls": "tool_call",
}


class PydanticAIDouble(FunctionModel):
    """A model of Pydantic AI that says what a double says, at once or as a stream."""

    def __init__(self, double: Double, tracer_provider: TracerProvider | None) -> None:
        self._double = double
        self._tracer_provider = tracer_provider
        super().__init__(self._answer, model_name=double.name)

    def _answer(self, _messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return _response(self._turn(info.model_request_parameters), self.model_name)

    def _turn(self, parameters: ModelRequestParameters) -> ModelTurn:
        offered = [
            OfferedTool(name=each.name, parameters=each.parameters_json_schema)
            for each in parameters.function_tools
        ]
        return self._double.answer_a_client(offered, self._tracer_provider)

    @override
    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Answer piece by piece."""
        await let_others_run()
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        response = _response(self._turn(parameters), self.model_name)
        yield _Streamed(model_request_parameters=parameters, response=response)


@dataclass
class _Streamed(StreamedResponse):
    """A whole answer, given piece by piece."""

    response: ModelResponse
    _timestamp: datetime = field(default_factory=lambda: datetime.now(timezone.utc), init=False)

    @override
    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for index, part in enumerate(self.response.parts):
            if isinstance(part, TextPart):
                for piece in halves(part.content):
                    for event in self._parts_manager.handle_text_delta(
                        vendor_part_id=index, content=piece
                    ):
                        yield event
            elif isinstance(part, ToolCallPart):
                yield self._parts_manager.handle_tool_call_part(
                    vendor_part_id=index,
                    tool_name=part.tool_name,
                    args=part.args_as_json_str(),
                    tool_call_id=part.tool_call_id,
                )
        self._usage = self.response.usage
        self.finish_reason = self.response.finish_reason

    @property
    @override
    def model_name(self) -> str:
        return self.response.model_name or ""

    @property
    @override
    def provider_name(self) -> str | None:
        return None

    @property
    @override
    def provider_url(self) -> str | None:
        return None

    @property
    @override
    def timestamp(self) -> datetime:
        return self._timestamp


def _response(turn: ModelTurn, model_name: str) -> ModelResponse:
    texts = [TextPart(turn.text)] if turn.text or not turn.calls else []
    calls = [
        ToolCallPart(call.name, _arguments(call.arguments), call.call_id or "")
        for call in turn.calls
    ]
    return ModelResponse(
        parts=[*texts, *calls],
        usage=RequestUsage(input_tokens=turn.input_tokens, output_tokens=turn.output_tokens),
        model_name=model_name,
        finish_reason=_finish_reason(turn),
    )


def _arguments(arguments: object) -> str | dict[str, Any]:
    known = arguments_object(arguments)
    # What is no object stays a text: Pydantic AI tells the model what is wrong with it.
    return arguments_text(arguments) if known is None else known


def _finish_reason(turn: ModelTurn) -> FinishReason | None:
    if turn.finish_reason == "error":  # a word of Pydantic AI's own
        return "error"
    meaning = meaning_of(turn)
    return None if meaning is None else _FINISH_REASONS[meaning]
