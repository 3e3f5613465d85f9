"""The scripted model server as real `openai` clients see it."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import openai
import pytest

from otel_loopguard.testing import ModelRequest, ModelServer, model_server
from otel_loopguard.testing.scripts import Turn as Scripted

if TYPE_CHECKING:
    from pathlib import Path

    from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
    from openai.types.chat import ChatCompletionFunctionToolParam as ChatTool
    from openai.types.responses import FunctionToolParam, Response, ResponseInputItemParam

Api: TypeAlias = Literal["openai-chat", "openai-responses"]

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}
CHAT_TOOLS: list[ChatTool] = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA, "strict": True}}
    for name in ("search", "lookup")
]
RESPONSES_TOOLS: list[FunctionToolParam] = [
    {"type": "function", "name": name, "parameters": SCHEMA, "strict": True}
    for name in ("search", "lookup")
]


class Turn(NamedTuple):
    """What a client understood of one answer."""

    calls: tuple[tuple[str, str, str], ...]
    """Id, name and arguments."""
    text: str
    tokens: tuple[int, int, int]
    """Input, cached among them, output."""
    ending: str


def chat_history(turns: list[Turn]) -> list[ChatCompletionMessageParam]:
    history: list[ChatCompletionMessageParam] = [{"role": "user", "content": "go"}]
    for turn in turns:
        history.append(
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": call_id, "type": "function", "function": {"name": name, "arguments": a}}
                    for call_id, name, a in turn.calls
                ],
            }
        )
        history.extend(
            {"role": "tool", "tool_call_id": call_id, "content": "ok"}
            for call_id, _, _ in turn.calls
        )
    return history


def responses_history(turns: list[Turn]) -> list[ResponseInputItemParam]:
    history: list[ResponseInputItemParam] = [{"role": "user", "content": "go"}]
    for turn in turns:
        for call_id, name, arguments in turn.calls:
            history.append(
                {
                    "type": "function_call",
                    "call_id": call_id,
                    "name": name,
                    "arguments": arguments,
                }
            )
            history.append({"type": "function_call_output", "call_id": call_id, "output": "ok"})
    return history


def read_completion(completion: ChatCompletion) -> Turn:
    (choice,) = completion.choices
    usage = completion.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert usage.completion_tokens_details.reasoning_tokens == 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    return Turn(
        calls=tuple(
            (call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or ()
            if call.type == "function"
        ),
        text=choice.message.content or "",
        tokens=(
            usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens or 0,
            usage.completion_tokens,
        ),
        ending=choice.finish_reason,
    )


def read_response(response: Response) -> Turn:
    usage = response.usage
    assert usage is not None
    assert usage.output_tokens_details.reasoning_tokens == 0
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    return Turn(
        calls=tuple(
            (item.call_id, item.name, item.arguments)
            for item in response.output
            if item.type == "function_call"
        ),
        text=response.output_text,
        tokens=(
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.output_tokens,
        ),
        ending=str(response.status),
    )


def ask(
    client: openai.OpenAI, api: Api, model: str, turns: list[Turn], *, stream: bool = False
) -> Turn:
    if api == "openai-chat":
        messages = chat_history(turns)
        if not stream:
            return read_completion(
                client.chat.completions.create(model=model, messages=messages, tools=CHAT_TOOLS)
            )
        with client.chat.completions.stream(
            model=model,
            messages=messages,
            tools=CHAT_TOOLS,
            stream_options={"include_usage": True},
        ) as events:
            return read_completion(events.get_final_completion())
    items = responses_history(turns)
    if not stream:
        return read_response(
            client.responses.create(model=model, input=items, tools=RESPONSES_TOOLS)
        )
    with client.responses.stream(model=model, input=items, tools=RESPONSES_TOOLS) as events:
        return read_response(events.get_final_response())


async def ask_async(
    client: openai.AsyncOpenAI, api: Api, model: str, turns: list[Turn], *, stream: bool
) -> Turn:
    if api == "openai-chat":
        messages = chat_history(turns)
        if not stream:
            return read_completion(
                await client.chat.completions.create(
                    model=model, messages=messages, tools=CHAT_TOOLS
                )
            )
        async with client.chat.completions.stream(
            model=model,
            messages=messages,
            tools=CHAT_TOOLS,
            stream_options={"include_usage": True},
        ) as events:
            return read_completion(await events.get_final_completion())
    items = responses_history(turns)
    if not stream:
        return read_response(
            await client.responses.create(model=model, input=items, tools=RESPONSES_TOOLS)
        )
    async with client.responses.stream(model=model, input=items, tools=RESPONSES_TOOLS) as events:
        return read_response(await events.get_final_response())


def run(
    server: ModelServer, api: Api, model: str, *, limit: int, stream: bool = False
) -> list[Turn]:
    """Play an agent until the model answers, or for so many turns."""
    turns: list[Turn] = []
    with openai.OpenAI(base_url=server.url, api_key="none") as client:
        while len(turns) < limit and (not turns or turns[-1].calls):
            turns.append(ask(client, api, model, turns, stream=stream))
    return turns


async def run_async(
    server: ModelServer, api: Api, model: str, *, limit: int, stream: bool
) -> list[Turn]:
    turns: list[Turn] = []
    async with openai.AsyncOpenAI(base_url=server.url, api_key="none") as client:
        while len(turns) < limit and (not turns or turns[-1].calls):
            turns.append(await ask_async(client, api, model, turns, stream=stream))
    return turns


def play(
    server: ModelServer, api: Api, model: str, *, limit: int, stream: bool, asynchronous: bool
) -> list[Turn]:
    if asynchronous:
        return asyncio.run(run_async(server, api, model, limit=limit, stream=stream))
    return run(server, api, model, limit=limit, stream=stream)


every_way = pytest.mark.parametrize(
    ("api", "stream", "asynchronous"),
    [
        (api, stream, asynchronous)
        for api in ("openai-chat", "openai-responses")
        for stream in (False, True)
        for asynchronous in (False, True)
    ],
)


@every_way
def test_finish3_takes_two_tools_and_an_answer(
    api: Api, *, stream: bool, asynchronous: bool
) -> None:
    with model_server("finish3") as server:
        turns = play(server, api, "m", limit=10, stream=stream, asynchronous=asynchronous)
    assert [[name for _, name, _ in turn.calls] for turn in turns] == [["search"], ["lookup"], []]
    assert [turn.text for turn in turns] == ["", "", "The final answer is 42."]
    assert [turn.tokens for turn in turns] == [(100, 0, 20), (130, 64, 20), (160, 64, 20)]
    endings = {
        "openai-chat": ["tool_calls", "tool_calls", "stop"],
        "openai-responses": ["completed", "completed", "completed"],
    }
    assert [turn.ending for turn in turns] == endings[api]
    assert [(r.number, r.api, r.model, r.script, r.stream) for r in server.requests] == [
        (number, api, "m", "finish3", stream) for number in (1, 2, 3)
    ]
    assert [(r.tool_results, r.retry_count, r.status) for r in server.requests] == [
        (0, 0, 200),
        (1, 0, 200),
        (2, 0, 200),
    ]
    assert [
        (r.usage.input_tokens, r.usage.cached_tokens, r.usage.output_tokens)
        for r in server.requests
        if r.usage
    ] == [turn.tokens for turn in turns]


@every_way
def test_endless_asks_for_the_same_call_for_ever(
    api: Api, *, stream: bool, asynchronous: bool
) -> None:
    with model_server() as server:
        turns = play(server, api, "m", limit=7, stream=stream, asynchronous=asynchronous)
    calls = [call for turn in turns for call in turn.calls]
    assert [call[1:] for call in calls] == [("search", '{"query":"alpha"}')] * 7
    assert len({call_id for call_id, _, _ in calls}) == 7
    assert server.count() == server.count("endless") == 7


def test_one_server_plays_a_runaway_and_a_healthy_run_at_once() -> None:
    with model_server("endless") as server, ThreadPoolExecutor(3) as threads:
        runaway = threads.submit(run, server, "openai-chat", "endless", limit=20)
        healthy = threads.submit(run, server, "openai-chat", "finish3", limit=20)
        other = threads.submit(run, server, "openai-responses", "gpt-4o", limit=6)
        lengths = (len(runaway.result()), len(healthy.result()), len(other.result()))
    assert lengths == (20, 3, 6)
    assert (server.count("endless"), server.count("finish3"), server.count()) == (26, 3, 29)
    assert [request.number for request in server.requests] == list(range(1, 30))


def test_call_ids_differ_between_servers() -> None:
    with model_server() as one, model_server() as two:
        turns = [*run(one, "openai-chat", "m", limit=2), *run(two, "openai-chat", "m", limit=2)]
    assert len({call_id for turn in turns for call_id, _, _ in turn.calls}) == 4


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_strict_names_the_call_without_a_result(api: Api) -> None:
    """The client's own retries must not hide it: 400 is not retried."""
    with (
        model_server("finish3") as server,
        openai.OpenAI(base_url=server.url, api_key="none") as client,
    ):
        first = ask(client, api, "m", [])
        ((call_id, _, _),) = first.calls
        with pytest.raises(openai.BadRequestError, match=call_id):
            leave_call_open(client, api, call_id)
    assert [request.status for request in server.requests] == [200, 400]


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_without_strict_an_open_call_is_let_through(api: Api) -> None:
    with (
        model_server("finish3", strict=False) as server,
        openai.OpenAI(base_url=server.url, api_key="none") as client,
    ):
        leave_call_open(client, api, "call_x")
    assert [request.status for request in server.requests] == [200]


def leave_call_open(client: openai.OpenAI, api: Api, call_id: str) -> None:
    if api == "openai-chat":
        messages = chat_history([Turn(((call_id, "search", "{}"),), "", (0, 0, 0), "")])[:-1]
        client.chat.completions.create(model="m", messages=messages, tools=CHAT_TOOLS)
    else:
        items = responses_history([Turn(((call_id, "search", "{}"),), "", (0, 0, 0), "")])[:-1]
        client.responses.create(model="m", input=items, tools=RESPONSES_TOOLS)


def test_the_cap_ends_a_runaway_and_leaves_other_scripts_alone() -> None:
    with model_server(cap=4) as server:
        with pytest.raises(openai.BadRequestError, match=r"'endless' has had the 4 requests"):
            run(server, "openai-chat", "m", limit=50)
        assert len(run(server, "openai-chat", "finish3", limit=50)) == 3
    assert (server.count("endless"), server.count("finish3")) == (5, 3)


def test_a_wrong_path_is_told_the_right_ones() -> None:
    with model_server() as server:
        root = server.url.removesuffix("/v1")
        with (
            openai.OpenAI(base_url=root, api_key="none") as client,
            pytest.raises(openai.NotFoundError, match=r"'/v1/chat/completions'"),
        ):
            ask(client, "openai-chat", "m", [])
    assert server.count() == 0


def test_a_body_that_is_no_request_is_refused_and_counted() -> None:
    with (
        model_server() as server,
        closing(http.client.HTTPConnection(address_of(server))) as connection,
    ):
        connection.request("POST", "/v1/responses", b"no JSON")
        answer = connection.getresponse()
        assert (answer.status, b"invalid_request_error" in answer.read()) == (400, True)
    assert [(each.status, each.retry_count) for each in server.requests] == [(400, None)]
    assert server.requests[0].usage is None


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    """With Nagle's algorithm on, every answer on a kept connection takes at least 40 ms."""
    with (
        model_server() as server,
        openai.OpenAI(base_url=server.url, api_key="none") as client,
    ):
        times = [seconds_for_an_answer(client) for _ in range(10)]
    assert min(times) < 0.03


def seconds_for_an_answer(client: openai.OpenAI) -> float:
    started = time.perf_counter()
    ask(client, "openai-chat", "m", [])
    return time.perf_counter() - started


@pytest.mark.parametrize(
    ("script", "cap", "said"),
    [
        ("gpt-4o", None, "'gpt-4o' does not exist"),
        ("endless", 0, "cap=0"),
        ("endless", True, "cap=True"),
    ],
)
def test_a_server_that_cannot_be_is_refused(script: str, cap: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=said), model_server(script, cap=cap):
        pass


def test_the_server_is_gone_when_the_block_is_left_by_an_error() -> None:
    addresses: list[str] = []
    with pytest.raises(KeyError, match="left"):
        fail_while_serving(addresses)
    host, port = addresses[0].split(":")
    assert host == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    assert "loopguard-model-server" not in {thread.name for thread in threading.enumerate()}


def fail_while_serving(addresses: list[str]) -> None:
    with model_server() as server:
        addresses.append(address_of(server))
        run(server, "openai-chat", "m", limit=1)
        raise KeyError("left")


def address_of(server: ModelServer) -> str:
    return server.url.removeprefix("http://").removesuffix("/v1")


def test_another_script_is_played_between_runs() -> None:
    with model_server() as server:
        assert len(run(server, "openai-chat", "m", limit=5)) == 5
        server.play("finish3")
        assert len(run(server, "openai-chat", "m", limit=5)) == 3
        with pytest.raises(ValueError, match="'finnish' does not exist"):
            server.play("finnish")
        assert len(run(server, "openai-responses", "m", limit=5)) == 3
    assert (server.count("endless"), server.count("finish3")) == (5, 6)


def test_a_refused_runaway_ends_until_another_script_is_played() -> None:
    with model_server() as server:
        run(server, "openai-chat", "m", limit=2)
        server.refuse("the test is over")
        for model in ("m", "finish3"):
            with pytest.raises(openai.BadRequestError, match="the test is over"):
                run(server, "openai-chat", model, limit=50)
        server.play("finish3")
        run(server, "openai-chat", "m", limit=50)
    assert [each.status for each in server.requests] == [200, 200, 400, 400, 200, 200, 200]


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_each_tool_result_counts_once(api: Api) -> None:
    with model_server("parallel:2", cap=3) as server:
        assert server.tool_results == 0
        run(server, api, "m", limit=3)
        assert server.tool_results == 4, "what is asked last is not answered"
        with pytest.raises(openai.BadRequestError):
            run(server, api, "m", limit=1)
        run(server, api, "finish3", limit=9)
    assert server.tool_results == 6, "those of another run are others"


def test_a_script_file_is_played_to_its_end_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text(
        '{"calls": [{"name": "search", "arguments": {"query": "otel"}}], '
        '"usage": {"input_tokens": 900, "cached_tokens": 512, "output_tokens": 7}}\n'
        '{"error": {"status": 400, "message": "as it happened"}}\n'
        '{"text": "Found", "finish_reason": "length"}\n'
    )
    with (
        model_server(path) as server,
        openai.OpenAI(base_url=server.url, api_key="none") as client,
    ):
        first = ask(client, "openai-chat", "m", [])
        with pytest.raises(openai.BadRequestError, match="as it happened"):
            ask(client, "openai-chat", "m", [first])
        cut = ask(client, "openai-responses", "m", [first])
        with pytest.raises(openai.BadRequestError, match=r"has 3 turns, and request 4 wants"):
            ask(client, "openai-chat", "m", [first])
        server.play(path)
        again = ask(client, "openai-chat", "m", [])
    assert [call[1:] for call in first.calls] == [("search", '{"query":"otel"}')]
    assert (first.tokens, cut.text, cut.ending) == ((900, 512, 7), "Found", "incomplete")
    assert [call[1:] for call in again.calls] == [call[1:] for call in first.calls]
    assert [each.status for each in server.requests] == [200, 400, 200, 400, 200]
    assert server.count(str(path)) == 5


def test_a_refused_history_uses_up_no_turn() -> None:
    turns = [Scripted(text="one"), Scripted(text="two")]
    with (
        model_server(turns) as server,
        openai.OpenAI(base_url=server.url, api_key="none") as client,
    ):
        with pytest.raises(openai.BadRequestError, match="call_x"):
            leave_call_open(client, "openai-chat", "call_x")
        assert [ask(client, "openai-chat", "m", []).text for _ in turns] == ["one", "two"]


def test_slow_answers_take_their_time_and_do_not_hold_each_other_up() -> None:
    with model_server("slow:1") as server, ThreadPoolExecutor(6) as threads:
        started = time.monotonic()
        runs = [threads.submit(run, server, "openai-chat", "m", limit=1) for _ in range(6)]
        turns = [each.result() for each in runs]
        taken = time.monotonic() - started
    assert 1 <= taken < 6
    assert len({call_id for (turn,) in turns for call_id, _, _ in turn.calls}) == 6


def test_whoever_waits_for_a_slow_answer_is_refused_as_well() -> None:
    arrived = threading.Event()
    with model_server("slow:600") as server, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(run, server, "openai-chat", "m", limit=1)
        while not server.count():
            arrived.wait(0.01)
        server.refuse("the test is over")
        with pytest.raises(openai.BadRequestError, match="the test is over"):
            waiting.result(timeout=30)
    assert [(each.status, each.usage) for each in server.requests] == [(400, None)]


def test_the_block_is_left_at_once_while_an_answer_is_slow() -> None:
    arrived = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        with model_server("slow:600") as server:
            waiting = threads.submit(run, server, "openai-chat", "m", limit=1)
            while not server.count():
                arrived.wait(0.01)
        with pytest.raises(openai.BadRequestError, match="about to close"):
            waiting.result(timeout=30)


def test_a_port_that_is_taken_cannot_be_had_and_one_that_was_can() -> None:
    with model_server() as server:
        port = int(server.root.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"), model_server(port=port):
            pass
        left_open = http.client.HTTPConnection(address_of(server))
        left_open.request("GET", "/")
        assert left_open.getresponse().read()
    # The server closed that connection, which the system remembers for a while.
    with closing(left_open), model_server(port=port) as again:
        assert again.root == server.root


def test_each_request_is_told_of_as_it_is_answered() -> None:
    told: list[ModelRequest] = []
    with model_server("finish3", on_request=told.append) as server:
        run(server, "openai-chat", "m", limit=9)
        assert told == server.requests
        with pytest.raises(openai.BadRequestError):
            leave_open(server)
        assert told == server.requests
    assert [each.status for each in told] == [200, 200, 200, 400]


def leave_open(server: ModelServer) -> None:
    with openai.OpenAI(base_url=server.url, api_key="none") as client:
        leave_call_open(client, "openai-chat", "call_x")


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize(("script", "turns"), [("finish:5", 5), ("finish:1", 1), ("poll:4", 5)])
def test_a_healthy_run_ends_by_itself(api: Api, script: str, turns: int) -> None:
    with model_server() as server:
        played = run(server, api, script, limit=50)
    assert len(played) == turns
    assert played[-1].text == "The final answer is 42."
    assert server.tool_results == turns - 1
