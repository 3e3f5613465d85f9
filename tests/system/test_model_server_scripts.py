"""Every script by every API, at once and streamed, as the official clients understand it."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import anthropic
import openai
import pytest
from openai.types.responses import Response

from otel_loopguard.testing import ModelServer, model_server
from otel_loopguard.testing.scripts import DESCRIPTIONS

if TYPE_CHECKING:
    from anthropic.types import MessageParam, ToolParam
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
    from openai.types.responses import FunctionToolParam

Api: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic-messages"]
Calls: TypeAlias = tuple[tuple[str, str], ...]

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
NAMES = ("search", "get_status", "transfer_to_writer")
CHAT_TOOLS: list[ChatCompletionFunctionToolParam] = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES
]
RESPONSES_TOOLS: list[FunctionToolParam] = [
    {"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES
]
ANTHROPIC_TOOLS: list[ToolParam] = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
GO_CHAT: list[ChatCompletionMessageParam] = [{"role": "user", "content": "go"}]
GO: list[MessageParam] = [{"role": "user", "content": "go"}]

CALL = ("search", '{"query":"alpha"}')
FIRST_TURNS: dict[str, tuple[Calls, str, str]] = {
    "endless": ((CALL,), "", "calls"),
    "alternate": ((CALL,), "", "calls"),
    "cycle:3": ((CALL,), "", "calls"),
    "varying": ((CALL,), "", "calls"),
    "parallel:2": ((CALL, CALL), "", "calls"),
    "handoff": ((("transfer_to_writer", '{"query":"alpha"}'),), "", "calls"),
    "slow:0.01": ((CALL,), "", "calls"),
    "finish:1": ((), "The final answer is 42.", "done"),
    "finish3": ((CALL,), "", "calls"),
    "poll": ((("get_status", '{"query":"alpha"}'),), "", "calls"),
    "poll:1": ((("get_status", '{"query":"alpha"}'),), "", "calls"),
    "error_tool": ((("search", '{"query":"does-not-exist"}'),), "", "calls"),
    "unknown_tool": ((("no_such_tool", "{}"),), "", "calls"),
    "bad_arguments": ((("search", '{"unexpected": alpha}'),), "", "calls"),
    "misfit_arguments": ((("search", '{"unexpected":"alpha"}'),), "", "calls"),
    "truncated": ((), "The final a", "cut"),
    "truncated_call": ((("search", '{"query"'),), "", "cut"),
    "filtered": ((), "", "filtered"),
    "empty": ((), "", "done"),
}

OF_ANTHROPIC: dict[str, Calls] = {
    "bad_arguments": (("search", '{"unexpected":"alpha"}'),),
    "truncated_call": (("search", "{}"),),
}
"""What an API that carries a value cannot say."""

ENDINGS: dict[str, dict[Api, str]] = {
    "calls": {
        "openai-chat": "tool_calls",
        "openai-responses": "completed",
        "anthropic-messages": "tool_use",
    },
    "done": {
        "openai-chat": "stop",
        "openai-responses": "completed",
        "anthropic-messages": "end_turn",
    },
    "cut": {
        "openai-chat": "length",
        "openai-responses": "incomplete max_output_tokens",
        "anthropic-messages": "max_tokens",
    },
    "filtered": {
        "openai-chat": "content_filter",
        "openai-responses": "incomplete content_filter",
        "anthropic-messages": "refusal",
    },
}

APIS: list[Api] = ["openai-chat", "openai-responses", "anthropic-messages"]


class Answer(NamedTuple):
    """What a client understood."""

    calls: Calls
    """Name and arguments."""
    text: str
    ending: str
    tokens: tuple[int, int, int]
    """Input with the cached ones, cached, output."""


@pytest.fixture(scope="module")
def server() -> Generator[ModelServer]:
    with model_server() as served:
        yield served


def ask(server: ModelServer, api: Api, script: str, *, stream: bool) -> Answer:
    if api == "anthropic-messages":
        return ask_anthropic(server, script, stream=stream)
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        if api == "openai-responses":
            return ask_responses(client, script, stream=stream)
        return stream_chat(client, script) if stream else ask_chat(client, script)


def ask_chat(client: openai.OpenAI, script: str) -> Answer:
    completion = client.chat.completions.create(model=script, messages=GO_CHAT, tools=CHAT_TOOLS)
    (choice,) = completion.choices
    calls = [call for call in choice.message.tool_calls or () if call.type == "function"]
    return Answer(
        calls=tuple((call.function.name, call.function.arguments) for call in calls),
        text=choice.message.content or "",
        ending=choice.finish_reason,
        tokens=chat_tokens(completion.usage),
    )


def stream_chat(client: openai.OpenAI, script: str) -> Answer:
    """Put the chunks together: the client's own way to do it raises for a turn that was cut."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    text, ending, tokens = "", "", (0, 0, 0)
    for chunk in client.chat.completions.create(
        model=script,
        messages=GO_CHAT,
        tools=CHAT_TOOLS,
        stream=True,
        stream_options={"include_usage": True},
    ):
        if chunk.usage:
            tokens = chat_tokens(chunk.usage)
        for choice in chunk.choices:
            text += choice.delta.content or ""
            ending = choice.finish_reason or ending
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                names.setdefault(call.index, call.function.name or "")
                arguments[call.index] = arguments.get(call.index, "") + (
                    call.function.arguments or ""
                )
    calls = tuple((names[index], arguments[index]) for index in names)
    return Answer(calls=calls, text=text, ending=ending, tokens=tokens)


def chat_tokens(usage: CompletionUsage | None) -> tuple[int, int, int]:
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    cached = usage.prompt_tokens_details.cached_tokens or 0
    return usage.prompt_tokens, cached, usage.completion_tokens


def ask_responses(client: openai.OpenAI, script: str, *, stream: bool) -> Answer:
    response = (
        stream_responses(client, script)
        if stream
        else client.responses.create(model=script, input="go", tools=RESPONSES_TOOLS)
    )
    assert response.usage is not None
    why = response.incomplete_details and response.incomplete_details.reason
    return Answer(
        calls=tuple(
            (item.name, item.arguments) for item in response.output if item.type == "function_call"
        ),
        text=response.output_text,
        ending=" ".join(filter(None, [response.status, why])),
        tokens=(
            response.usage.input_tokens,
            response.usage.input_tokens_details.cached_tokens,
            response.usage.output_tokens,
        ),
    )


def stream_responses(client: openai.OpenAI, script: str) -> Response:
    """Return what the stream ends with: the client's own way to do it knows no other end."""
    said, ends = "", list[Response]()
    for event in client.responses.create(
        model=script, input="go", tools=RESPONSES_TOOLS, stream=True
    ):
        if event.type == "response.output_text.delta":
            said += event.delta
        if event.type == "response.completed" or event.type == "response.incomplete":  # noqa: PLR1714 -- narrows
            ends.append(event.response)
    (response,) = ends
    assert said == response.output_text
    return response


def ask_anthropic(server: ModelServer, script: str, *, stream: bool) -> Answer:
    with anthropic.Anthropic(base_url=server.root, api_key="none", max_retries=0) as client:
        if stream:
            with client.messages.stream(
                model=script, max_tokens=100, messages=GO, tools=ANTHROPIC_TOOLS
            ) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(
                model=script, max_tokens=100, messages=GO, tools=ANTHROPIC_TOOLS
            )
    calls = [block for block in message.content if block.type == "tool_use"]
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    return Answer(
        calls=tuple((call.name, json.dumps(call.input, separators=(",", ":"))) for call in calls),
        text="".join(block.text for block in message.content if block.type == "text"),
        ending=str(message.stop_reason),
        tokens=(usage.input_tokens + cached, cached, usage.output_tokens),
    )


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
@pytest.mark.parametrize("script", FIRST_TURNS)
def test_a_client_understands_the_first_turn(
    server: ModelServer, api: Api, script: str, *, stream: bool
) -> None:
    calls, text, ending = FIRST_TURNS[script]
    if api == "anthropic-messages":
        calls = OF_ANTHROPIC.get(script, calls)
    assert ask(server, api, script, stream=stream) == Answer(
        calls=calls, text=text, ending=ENDINGS[ending][api], tokens=(100, 0, 20)
    )


def test_every_script_that_answers_is_tried() -> None:
    families = {name.partition(":")[0] for name in FIRST_TURNS}
    assert families | {"http_error"} == {name.partition(":")[0] for name in DESCRIPTIONS}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
@pytest.mark.parametrize(
    ("status", "raised", "of_openai", "of_anthropic"),
    [
        (400, "BadRequestError", "invalid_request_error", "invalid_request_error"),
        (401, "AuthenticationError", "invalid_request_error", "authentication_error"),
        (403, "PermissionDeniedError", "invalid_request_error", "permission_error"),
        (404, "NotFoundError", "invalid_request_error", "not_found_error"),
        (422, "UnprocessableEntityError", "invalid_request_error", "invalid_request_error"),
        (429, "RateLimitError", "requests", "rate_limit_error"),
        (500, "InternalServerError", "server_error", "api_error"),
        (503, "InternalServerError", "server_error", "api_error"),
        (529, "APIStatusError", "server_error", "overloaded_error"),
    ],
)
def test_a_client_understands_an_error(
    server: ModelServer,
    api: Api,
    status: int,
    raised: str,
    of_openai: str,
    of_anthropic: str,
    *,
    stream: bool,
) -> None:
    package = anthropic if api == "anthropic-messages" else openai
    with pytest.raises(package.APIStatusError) as caught:
        ask(server, api, f"http_error:{status}", stream=stream)
    kinds = {each.__name__ for each in type(caught.value).__mro__}
    assert (caught.value.status_code, raised in kinds) == (status, True)
    body = caught.value.response.json()["error"]
    expected = of_anthropic if api == "anthropic-messages" else of_openai
    assert (body["type"], body["message"]) == (expected, "an error that the script plays")
    assert (server.requests[-1].status, server.requests[-1].usage) == (status, None)


def test_a_client_tries_again_what_it_takes_for_temporary(server: ModelServer) -> None:
    before = server.count("http_error:503")
    with (
        openai.OpenAI(base_url=server.url, api_key="none", max_retries=1) as client,
        pytest.raises(openai.InternalServerError),
    ):
        ask_chat(client, "http_error:503")
    assert server.count("http_error:503") - before == 2
    assert [each.retry_count for each in server.requests[-2:]] == [0, 1]
