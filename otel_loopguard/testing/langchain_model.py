"""A double as a chat model of LangChain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing.call_arguments import arguments_object, arguments_text
from otel_loopguard.testing.double import Double
from otel_loopguard.testing.scripts import OfferedTool
from otel_loopguard.testing.wire import halves


class LangChainDouble(BaseChatModel):
    """A chat model of LangChain that says what a double says, at once or as a stream."""

    double: Any
    """An `EndlessModel` or a `ScriptedModel`."""

    tracer_provider: Any = None
    """Where the span of a call is written that no other shows; the global one for `None`."""

    @property
    @override
    def _llm_type(self) -> str:
        return "loopguard-double"

    @override
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Instrumentations read the model's name here.
        params = super()._get_ls_params(stop=stop, **kwargs)
        return {**params, "ls_model_name": self._double.name}

    @property
    def _double(self) -> Double:
        return cast("Double", self.double)

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer these tools with each request."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = self._message(self._turn(kwargs))
        generation = ChatGeneration(message=message, generation_info=message.response_metadata)
        return ChatResult(generations=[generation])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for message in self._chunks(self._turn(kwargs)):
            chunk = ChatGenerationChunk(
                message=message, generation_info=message.response_metadata or None
            )
            if run_manager is not None:
                run_manager.on_llm_new_token(str(message.content), chunk=chunk)
            yield chunk

    def _turn(self, request: Mapping[str, Any]) -> ModelTurn:
        return self._double.answer_a_client(_offered(request), self.tracer_provider)

    def _message(self, turn: ModelTurn) -> AIMessage:
        calls = [(each, arguments_object(each.arguments)) for each in turn.calls]
        return AIMessage(
            content=turn.text,
            tool_calls=[
                tool_call(name=each.name, args=arguments, id=each.call_id)
                for each, arguments in calls
                if arguments is not None
            ],
            invalid_tool_calls=[
                invalid_tool_call(
                    name=each.name,
                    args=arguments_text(each.arguments),
                    id=each.call_id,
                    error="the arguments are no JSON object",
                )
                for each, arguments in calls
                if arguments is None
            ],
            usage_metadata=_usage(turn),
            response_metadata=self._metadata(turn),
        )

    def _chunks(self, turn: ModelTurn) -> Iterator[AIMessageChunk]:
        for piece in filter(None, halves(turn.text)):
            yield AIMessageChunk(content=piece)
        for index, call in enumerate(turn.calls):
            begun, rest = halves(arguments_text(call.arguments))
            first = tool_call_chunk(name=call.name, args=begun, id=call.call_id, index=index)
            more = tool_call_chunk(args=rest, index=index)
            yield AIMessageChunk(content="", tool_call_chunks=[first])
            yield AIMessageChunk(content="", tool_call_chunks=[more])
        yield AIMessageChunk(
            content="",
            usage_metadata=_usage(turn),
            response_metadata=self._metadata(turn),
            chunk_position="last",
        )

    def _metadata(self, turn: ModelTurn) -> dict[str, Any]:
        reason = {"finish_reason": turn.finish_reason} if turn.finish_reason else {}
        return {"model_name": self._double.name, **reason}


def _usage(turn: ModelTurn) -> UsageMetadata:
    return UsageMetadata(
        input_tokens=turn.input_tokens,
        output_tokens=turn.output_tokens,
        total_tokens=turn.input_tokens + turn.output_tokens,
        input_token_details=InputTokenDetails(cache_read=0),
        output_token_details=OutputTokenDetails(reasoning=0),
    )


def _offered(request: Mapping[str, Any]) -> list[OfferedTool]:
    functions = [each["function"] for each in request.get("tools") or () if "function" in each]
    return [
        OfferedTool(name=each["name"], parameters=each.get("parameters") or {})
        for each in functions
    ]
