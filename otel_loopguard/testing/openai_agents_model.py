"""A double as a model of the OpenAI Agents SDK, at once or as a stream of response events."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from agents import Handoff, Model, ModelResponse, Tool, Usage, generation_span
from agents.items import TResponseOutputItem, TResponseStreamEvent
from agents.models.interface import ModelTracing
from agents.tool import FunctionTool
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from opentelemetry.trace import TracerProvider
from typing_extensions import override

from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing.call_arguments import arguments_text
from otel_loopguard.testing.double import Double, let_others_run
from otel_loopguard.testing.finish_reasons import Meaning, meaning_of
from otel_loopguard.testing.scripts import OfferedTool
from otel_loopguard.testing.wire import halves

_CUT: dict[Meaning, str] = {"content_filter": "content_filter", "length": "max_output_tokens"}
"""Why a response is incomplete, by what the reason that the turn finished for means."""


class OpenAIAgentsDouble(Model):
    """A model of the OpenAI Agents SDK that says what a double says."""

    def __init__(self, double: Double, tracer_provider: TracerProvider | None) -> None:
        self._double = double
        self._tracer_provider = tracer_provider

    @override
    async def get_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        **_others: Any,
    ) -> ModelResponse:
        """Answer at once."""
        await let_others_run()
        turn = self._turn(tools, handoffs, tracing)
        response = _response(turn, self._double.name)
        usage = Usage(
            requests=1,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            total_tokens=turn.input_tokens + turn.output_tokens,
        )
        return ModelResponse(output=response.output, usage=usage, response_id=response.id)

    @override
    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        **_others: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Answer in the events of a stream."""
        await let_others_run()
        response = _response(self._turn(tools, handoffs, tracing), self._double.name)
        for number, event in enumerate(_events(response)):
            event.sequence_number = number
            yield event

    def _turn(
        self, tools: Sequence[Tool], handoffs: Sequence[Handoff[Any, Any]], tracing: ModelTracing
    ) -> ModelTurn:
        with generation_span(model=self._double.name, disabled=tracing.is_disabled()) as span:
            offered = list(_offered(tools, handoffs))
            turn = self._double.answer_a_client(offered, self._tracer_provider)
            span.span_data.usage = {
                "input_tokens": turn.input_tokens,
                "output_tokens": turn.output_tokens,
            }
            return turn


def _offered(tools: Sequence[Tool], handoffs: Sequence[Handoff[Any, Any]]) -> Iterator[OfferedTool]:
    for tool in tools:
        if isinstance(tool, FunctionTool):
            yield OfferedTool(name=tool.name, parameters=tool.params_json_schema)
    for each in handoffs:
        yield OfferedTool(name=each.tool_name, parameters=each.input_json_schema)


def _response(turn: ModelTurn, model: str) -> Response:
    ident = secrets.token_hex(8)
    meaning = meaning_of(turn)
    cut = None if meaning is None else _CUT.get(meaning)
    return Response.model_validate(
        {
            "id": f"resp_{ident}",
            "object": "response",
            "created_at": time.time(),
            "model": model,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": cut} if cut else None,
            "output": list(_items(turn, ident)),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": turn.input_tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": turn.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": turn.input_tokens + turn.output_tokens,
            },
        }
    )


def _items(turn: ModelTurn, ident: str) -> Iterator[TResponseOutputItem]:
    if turn.text or not turn.calls:
        yield ResponseOutputMessage(
            id=f"msg_{ident}",
            type="message",
            role="assistant",
            status="completed",
            content=[ResponseOutputText(type="output_text", text=turn.text, annotations=[])],
        )
    for index, call in enumerate(turn.calls):
        yield ResponseFunctionToolCall(
            id=f"fc_{ident}_{index}",
            type="function_call",
            call_id=call.call_id or "",
            name=call.name,
            arguments=arguments_text(call.arguments),
            status="completed",
        )


def _events(response: Response) -> Iterator[Any]:
    begun = response.model_copy(update={"output": [], "status": "in_progress", "usage": None})
    yield ResponseCreatedEvent(type="response.created", response=begun, sequence_number=0)
    for index, item in enumerate(response.output):
        yield ResponseOutputItemAddedEvent(
            type="response.output_item.added",
            item=_opened(item),
            output_index=index,
            sequence_number=0,
        )
        yield from _pieces(item, index)
        yield ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=item, output_index=index, sequence_number=0
        )
    if response.status == "incomplete":
        yield ResponseIncompleteEvent(
            type="response.incomplete", response=response, sequence_number=0
        )
    else:
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=0
        )


def _opened(item: TResponseOutputItem) -> TResponseOutputItem:
    nothing: dict[str, object] = {"content": []}
    if isinstance(item, ResponseFunctionToolCall):
        nothing = {"arguments": ""}
    return item.model_copy(update={**nothing, "status": "in_progress"})


def _pieces(item: TResponseOutputItem, index: int) -> Iterator[Any]:
    place: dict[str, object] = {"output_index": index, "sequence_number": 0}
    if isinstance(item, ResponseFunctionToolCall):
        place |= {"item_id": item.id}
        for piece in halves(item.arguments):
            yield ResponseFunctionCallArgumentsDeltaEvent.model_validate(
                {**place, "type": "response.function_call_arguments.delta", "delta": piece}
            )
        done = {"name": item.name, "arguments": item.arguments}
        yield ResponseFunctionCallArgumentsDoneEvent.model_validate(
            {**place, "type": "response.function_call_arguments.done", **done}
        )
    elif isinstance(item, ResponseOutputMessage):
        place |= {"item_id": item.id, "content_index": 0, "logprobs": []}
        text = "".join(each.text for each in item.content if isinstance(each, ResponseOutputText))
        for piece in halves(text):
            yield ResponseTextDeltaEvent.model_validate(
                {**place, "type": "response.output_text.delta", "delta": piece}
            )
        yield ResponseTextDoneEvent.model_validate(
            {**place, "type": "response.output_text.done", "text": text}
        )
