"""The model gate, in front of the real clients and a real server."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.abort.model_paths import MODEL_PATH
from otel_loopguard.slots import CURRENT
from otel_loopguard.testing import model_server
from tests._gated import (
    CALL_ID,
    CHAT,
    TOLD,
    Ask,
    World,
    are_same,
    ask_with,
    check_patched_over,
    check_put_back,
    current_run,
    limit,
    originals,
    serving_world,
)
from tests._tracing import Traced

SDK_CLIENTS = (openai.OpenAI, openai.AsyncOpenAI, anthropic.Anthropic, anthropic.AsyncAnthropic)
PLACES: tuple[tuple[type, str], ...] = (
    *((client.__mro__[1], "request") for client in SDK_CLIENTS),
    (httpx.Client, "send"),
    (httpx.AsyncClient, "send"),
    (httpx2.Client, "send"),
    (httpx2.AsyncClient, "send"),
)
"""Where the gate stands."""

HTTPX2: Any = httpx2
"""Its types are not known to every checker."""


def arrivals() -> int:
    """Count the requests that have arrived anywhere."""
    return SERVED[0].count() + WORLD[0].seen.total()


SERVED: list[Any] = []
WORLD: list[World] = []


@pytest.fixture(scope="module", autouse=True)
def servers() -> Generator[None]:
    with model_server("endless") as server, serving_world() as made:
        SERVED.append(server)
        WORLD.append(made)
        yield
        SERVED.clear()
        WORLD.clear()


@pytest.fixture
def world() -> World:
    return WORLD[0]


# ------------------------------------------------------------------ every client, in every manner

GEMINI = "/v1beta/models/gemini:streamGenerateContent?alt=sse"
CALL: Any = {"name": "search", "arguments": "{}"}
SAID: Any = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "tool_calls": [{"id": CALL_ID, "type": "function", "function": CALL}],
    },
    *TOLD["messages"],
]
ITEMS: Any = [
    {"role": "user", "content": "go"},
    {"type": "function_call", "call_id": CALL_ID, **CALL},
    {"type": "function_call_output", "call_id": CALL_ID, "output": "nothing"},
]
BLOCKS: Any = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": CALL_ID, "name": "search", "input": {}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": CALL_ID, "content": "nothing"}],
    },
]
CLAUDE: Any = {"model": "claude", "max_tokens": 9, "messages": BLOCKS}


@contextmanager
def gpt() -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=SERVED[0].url, api_key="none", max_retries=5) as client:
        yield client


def async_gpt() -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=SERVED[0].url, api_key="none", max_retries=5)


def claude() -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=WORLD[0].url, api_key="none", max_retries=5)


def async_claude() -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=WORLD[0].url, api_key="none", max_retries=5)


def gpt_chat() -> None:
    with gpt() as client:
        client.chat.completions.create(model="m", messages=SAID)


def gpt_responses() -> None:
    with gpt() as client:
        client.responses.create(model="m", input=ITEMS)


def gpt_stream() -> None:
    with gpt() as client:
        list(client.chat.completions.create(model="m", messages=SAID, stream=True))


def gpt_raw_response() -> None:
    with gpt() as client:
        client.chat.completions.with_raw_response.create(model="m", messages=SAID)


async def gpt_async() -> None:
    async with async_gpt() as client:
        await client.chat.completions.create(model="m", messages=SAID)


async def gpt_async_stream() -> None:
    async with async_gpt() as client:
        stream = await client.responses.create(model="m", input=ITEMS, stream=True)
        assert [event async for event in stream]


def claude_messages() -> None:
    with claude() as client:
        client.messages.create(**CLAUDE)


def claude_stream() -> None:
    with claude() as client, client.messages.stream(**CLAUDE) as stream:
        stream.get_final_message()


async def claude_async() -> None:
    async with async_claude() as client:
        await client.messages.create(**CLAUDE)


async def claude_async_stream() -> None:
    async with async_claude() as client:
        stream = await client.messages.create(**CLAUDE, stream=True)
        assert [event async for event in stream]


def plain_httpx() -> None:
    with httpx.Client(base_url=WORLD[0].url) as client:
        client.post(CHAT, json=TOLD)


async def plain_httpx_async_stream() -> None:
    async with (
        httpx.AsyncClient(base_url=WORLD[0].url) as client,
        client.stream("POST", GEMINI, json=TOLD) as response,
    ):
        await response.aread()


def plain_httpx2() -> None:
    with HTTPX2.Client(base_url=WORLD[0].url) as client:
        client.post("/openai/deployments/d/chat/completions", json=TOLD)


async def plain_httpx2_async() -> None:
    async with HTTPX2.AsyncClient(base_url=WORLD[0].url) as client:
        await client.post("/openai/deployments/d/chat/completions?api-version=1", json=TOLD)


CLIENTS: tuple[Ask, ...] = (
    gpt_chat,
    gpt_responses,
    gpt_stream,
    gpt_raw_response,
    gpt_async,
    gpt_async_stream,
    claude_messages,
    claude_stream,
    claude_async,
    claude_async_stream,
    plain_httpx,
    plain_httpx_async_stream,
    plain_httpx2,
    plain_httpx2_async,
)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_beyond_the_limit_does_not_leave(process: Traced, client: Ask) -> None:
    process.guard(limit(2), mode="enforce")
    before = arrivals()

    with guarded_run():
        ask_with(client)
        ask_with(client)
        with pytest.raises(RunAborted) as raised:
            ask_with(client)
        assert current_run().ahead == 2, "one place for each, however many layers it passes"

    assert arrivals() - before == 2
    assert type(raised.value) is RunAborted
    assert raised.value.__cause__ is None, "the SDK's retries never saw it"
    assert raised.value.report.rule == "llm_call_budget"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_loop_without_any_span_is_known_by_its_calls(process: Traced, client: Ask) -> None:
    process.guard(limit(1), mode="enforce")
    before = arrivals()
    ask_with(client)
    with pytest.raises(RunAborted) as caught:
        ask_with(client)
    assert (caught.value.run_id, arrivals() - before) == (CALL_ID, 1)


@pytest.mark.parametrize("client", [gpt_chat, gpt_async, claude_messages, claude_async_stream])
def test_a_request_of_a_tripped_run_does_not_leave(process: Traced, client: Ask) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1), mode="enforce")
    with process.agent():
        ask_with(client)
        for _ in range(2):
            with process.tool():
                pass
        before = arrivals()
        with pytest.raises(RunAborted):
            ask_with(client)
        assert arrivals() == before
    ask_with(client)
    assert arrivals() == before + 1, "the run is over"


# ----------------------------------------------------------------------------------- what passes


@pytest.fixture
def tripped(process: Traced) -> Generator[Traced]:
    process.guard(Policy.none().with_limits(max_tool_calls=1), mode="enforce")
    with process.agent():
        for _ in range(2):
            with process.tool():
                pass
        yield process


@pytest.mark.parametrize(
    "path",
    [
        "/v1/search",
        "/channels/1/messages",
        "/forms/3/responses",
        "/chain/invoke",
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/embeddings",
        "/v1/responses/r_1/cancel",
        "/api/chats",
        "/",
    ],
)
def test_what_is_no_model_request_passes(tripped: Traced, world: World, path: str) -> None:
    before = world.seen[path]

    client: Any
    for package in (httpx, httpx2):
        with package.Client(base_url=world.url) as client:
            client.post(path, json={})

    assert world.seen[path] == before + 2
    assert tripped.total("loopguard.aborts", abort__result="ok") == 0


def test_reading_passes(tripped: Traced, world: World) -> None:
    with httpx.Client(base_url=world.url) as client:
        assert client.get(CHAT).status_code == 200
    with claude() as anthropic_client:
        anthropic_client.messages.count_tokens(model="claude", messages=SAID)
    with openai.OpenAI(base_url=f"{world.url}/v1", api_key="none") as openai_client:
        openai_client.models.list()
    assert tripped.total("loopguard.aborts", abort__result="ok") == 0


@pytest.mark.parametrize(
    "path",
    [
        "/v1/completions",
        "/chat/completions",
        "/openai/responses",
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/gemini-3:generateContent",
        "/v1/projects/p/models/m:streamGenerateContent",
        "/api/generate",
        "/model/anthropic.claude-v4:0/invoke-with-response-stream",
        "/model/nova/converse",
    ],
)
def test_what_is_a_model_request_is_known_by_its_path(path: str) -> None:
    assert MODEL_PATH.search(path)


def test_other_runs_and_no_run_pass(tripped: Traced) -> None:
    before = arrivals()

    contextvars.Context().run(gpt_chat)
    with guarded_run():
        gpt_chat()

    assert arrivals() == before + 2
    with pytest.raises(RunAborted):
        gpt_chat()
    assert tripped.total("loopguard.aborts", abort__hook="gate") == 1


@pytest.mark.parametrize("options", [{"mode": "observe"}, {"abort": ()}, {"abort": ("cancel",)}])
def test_a_guard_that_uses_no_gate_touches_nothing(
    process: Traced, options: dict[str, Any]
) -> None:
    before = originals(PLACES)
    process.guard(limit(1), **options)

    assert originals(PLACES) == before
    with guarded_run():
        gpt_chat()
        gpt_chat()


# ------------------------------------------------------------------------ retries and failures


def at_once(*_state: object, **_options: object) -> float:
    return 0.0


def test_the_retries_of_a_request_are_one_request(process: Traced, world: World) -> None:
    process.guard(limit(1), mode="enforce")
    world.failures += [500, 500]
    before = world.seen["/v1/messages"]

    with guarded_run():
        with (
            anthropic.Anthropic(base_url=world.url, api_key="none", max_retries=3) as client,
            pytest.MonkeyPatch.context() as quick,
        ):
            quick.setattr(client, "_calculate_retry_timeout", at_once)
            client.messages.create(**CLAUDE)
        assert current_run().ahead == 1

    assert world.seen["/v1/messages"] == before + 3


@pytest.mark.parametrize("client", [claude_messages, plain_httpx, plain_httpx2])
def test_a_request_that_fails_gives_its_place_back(
    process: Traced, world: World, client: Ask
) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        for _ in range(3):
            world.failures.append(400)
            if client is claude_messages:
                with pytest.raises(anthropic.BadRequestError):
                    ask_with(client)
            else:
                ask_with(client)
            assert current_run().ahead == 0
        ask_with(client)
        with pytest.raises(RunAborted):
            ask_with(client)


def test_a_request_that_finds_nobody_gives_its_place_back(process: Traced) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                httpx.post(f"http://127.0.0.1:9{CHAT}", json={})
            assert current_run().ahead == 0
        with httpx.Client(base_url=WORLD[0].url) as client:
            assert client.post(CHAT, json={}).status_code == 200


def test_a_guard_that_refuses_makes_the_other_one_forget_the_request(process: Traced) -> None:
    process.guard(limit(10), mode="enforce")
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        gpt_chat()
        for _ in range(3):
            with pytest.raises(RunAborted):
                gpt_chat()
        slot = CURRENT.get()
        assert slot is not None
        assert [run.ahead for run in slot.runs.values()] == [1, 1]


# ---------------------------------------------------------------------- patching and unpatching


def test_the_very_original_functions_come_back_with_the_last_guard(process: Traced) -> None:
    check_put_back(process, PLACES, gpt_chat)


def openinference_style(owner: Any) -> Callable[[], None]:
    """Set `request` on a client class to a wrapper of the function found; return what undoes it."""
    found: Callable[..., object] = owner.request

    @wraps(found)
    def request(self: object, *args: object, **kwargs: object) -> object:
        return found(self, *args, **kwargs)

    owner.request = request
    return lambda: delattr(owner, "request")


@pytest.mark.parametrize("installed", ["before", "after"])
@pytest.mark.parametrize(
    ("owner", "client"), [(openai.OpenAI, gpt_chat), (openai.AsyncOpenAI, gpt_async)]
)
def test_an_instrumentation_of_the_client_class_is_covered(
    process: Traced, installed: str, owner: type, client: Ask
) -> None:
    before = originals(PLACES)
    if installed == "before":
        undo = openinference_style(owner)
        theirs = vars(owner)["request"]
        guard = process.guard(limit(1), mode="enforce")
        assert vars(owner)["request"] is not theirs, "theirs does not lead through ours"
    else:
        guard = process.guard(limit(1), mode="enforce")
        undo = openinference_style(owner)
        theirs = vars(owner)["request"]
    try:
        arrived = arrivals()
        with guarded_run():
            ask_with(client)
            with pytest.raises(RunAborted) as raised:
                ask_with(client)
            assert raised.value.__cause__ is None
            assert current_run().ahead == 1
        assert arrivals() == arrived + 1
        guard.shutdown()
        assert vars(owner)["request"] is theirs, "what is not ours stays"
        ask_with(client)
    finally:
        undo()
    assert all(are_same(originals(PLACES), before))


def test_what_somebody_patched_over_ours_stays_and_is_not_patched_twice(process: Traced) -> None:
    check_patched_over(process, httpx.Client, "send", plain_httpx)


def test_what_somebody_has_put_back_is_patched_anew(process: Traced) -> None:
    """As an instrumentation does that was there first and is taken off."""
    before = vars(httpx.Client)["send"]
    first = process.guard(limit(1), mode="enforce")
    httpx.Client.send = before  # type: ignore[method-assign]
    first.shutdown()
    process.guard(limit(1), mode="enforce")
    assert vars(httpx.Client)["send"] is not before


def test_a_client_that_is_built_otherwise_is_left_alone(
    process: Traced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(httpx2, "AsyncClient")

    process.guard(limit(1), mode="enforce")

    assert [record.getMessage() for record in caplog.records] == [
        "model requests of httpx2 cannot be refused"
    ]
    with guarded_run():
        gpt_chat()
        with pytest.raises(RunAborted):
            gpt_chat()


LATE = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, guarded_run

guard = LoopGuardSpanProcessor(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
assert not {"openai", "httpx", "httpx2"} & set(sys.modules)
import httpx, httpx2, openai

url = sys.argv[1]
clients = (
    lambda: openai.OpenAI(base_url=f"{url}/v1", api_key="none").completions.create(
        model="m", prompt="go"
    ),
    lambda: httpx.post(f"{url}/v1/chat/completions", json={}),
    lambda: httpx2.post(f"{url}/v1/chat/completions", json={}),
)
for client in clients:
    with guarded_run():
        client()
        try:
            client()
        except RunAborted as error:
            print(type(error.__cause__).__name__)
guard.shutdown()
places = (openai._base_client.SyncAPIClient.request, httpx.Client.send, httpx2.AsyncClient.send)
print(*(type(place).__name__ for place in places))
"""


def test_clients_that_are_imported_later_are_guarded_too(world: World) -> None:
    before = world.seen.total()
    ran = subprocess.run(
        [sys.executable, "-c", LATE, world.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert ran.stdout.splitlines() == [*["NoneType"] * 3, "function function function"], ran.stderr
    assert world.seen.total() == before + 3


# ------------------------------------------------------------------------------ at the same time


@pytest.mark.parametrize("spans", ["model spans", "no spans"])
def test_parallel_threads_make_exactly_as_many_requests_as_are_allowed(
    process: Traced, spans: str
) -> None:
    process.guard(limit(5), mode="enforce")
    before = arrivals()

    def call(client: openai.OpenAI) -> str:
        try:
            if spans == "no spans":
                client.chat.completions.create(model="m", messages=SAID)
            else:
                with process.chat():
                    client.chat.completions.create(model="m", messages=SAID)
        except RunAborted:
            return "refused"
        return "left"

    with guarded_run() as run, gpt() as client, ThreadPoolExecutor(12) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, call, client) for _ in range(12)]
        outcomes = Counter(job.result() for job in jobs)

    assert outcomes == {"left": 5, "refused": 7}
    assert arrivals() == before + 5
    assert run.report is not None
    assert run.report.rule == "llm_call_budget"


@pytest.mark.parametrize("spans", ["model spans", "no spans"])
def test_gathered_coroutines_make_exactly_as_many_requests_as_are_allowed(
    process: Traced, spans: str
) -> None:
    process.guard(limit(5), mode="enforce", abort=("gate",))
    before = arrivals()

    async def call(client: openai.AsyncOpenAI) -> None:
        if spans == "no spans":
            await client.chat.completions.create(model="m", messages=SAID)
        else:
            with process.chat():
                await client.chat.completions.create(model="m", messages=SAID)

    async def main() -> list[Any]:
        async with guarded_run(), async_gpt() as client:
            return await asyncio.gather(*(call(client) for _ in range(12)), return_exceptions=True)

    outcomes = Counter(type(each).__name__ for each in asyncio.run(main()))
    assert outcomes == {"NoneType": 5, "RunAborted": 7}
    assert arrivals() == before + 5
