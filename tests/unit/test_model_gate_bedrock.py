"""The model gate in front of `botocore` and `aiobotocore`, and a server that plays Bedrock."""

from __future__ import annotations

import asyncio
import gc
import json
import struct
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import quote
from zlib import crc32

import aiobotocore.client
import aiobotocore.session
import botocore.client
import botocore.exceptions
import botocore.retries.standard
import botocore.session
import pytest
from botocore.config import Config
from starlette.responses import JSONResponse, Response

from otel_loopguard import Policy, RunAborted, guarded_run
from tests._gated import (
    CALL_ID,
    TOLD,
    Ask,
    World,
    ask_with,
    check_patched_over,
    check_put_back,
    current_run,
    limit,
    serving_world,
)
from tests._tracing import Traced

AIO: Any = aiobotocore.client
SYNC: Any = botocore.client
SESSION: Any = botocore.session.Session()
AIO_SESSION: Any = aiobotocore.session.AioSession()
"""Their types are not known to every checker. One of each, because each reads large files anew."""

PLACES: tuple[tuple[Any, str], ...] = (
    (SYNC.BaseClient, "_make_api_call"),
    (AIO.AioBaseClient, "_make_api_call"),
)
"""Where the gate stands."""

NOVA = "amazon.nova-lite-v1:0"
ARN = "arn:aws:bedrock:us-east-1:111122223333:inference-profile/us.amazon.nova-lite-v1:0"
EMBED = "amazon.titan-embed-text-v2:0"
SAID: Any = [
    {"role": "user", "content": [{"text": "go"}]},
    {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": CALL_ID, "name": "search", "input": {}}}],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": CALL_ID, "content": [{"text": "nothing"}]}}],
    },
]
BODY = json.dumps(TOLD)
TURN = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4},
    "metrics": {"latencyMs": 1},
}
ATTEMPTS = 3


def event(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one message of the format in which Bedrock streams."""
    packed = b"".join(
        struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name.encode(), 7, len(value), text)
        for name, value in headers.items()
        for text in [value.encode()]
    )
    prelude = struct.pack("!II", 16 + len(packed) + len(payload), len(packed))
    told = prelude + struct.pack("!I", crc32(prelude)) + packed + payload
    return told + struct.pack("!I", crc32(told))


def stream(kind: str, content: object) -> Response:
    headers = {
        ":message-type": "event",
        ":event-type": kind,
        ":content-type": "application/json",
    }
    body = event(headers, json.dumps(content).encode())
    return Response(body, media_type="application/vnd.amazon.eventstream")


WORLD: list[World] = []


@pytest.fixture(scope="module", autouse=True)
def server() -> Generator[None]:
    with serving_world() as made:
        for path in (f"/model/{NOVA}", f"/model/{quote(NOVA)}"):
            made.answers[f"{path}/converse"] = JSONResponse(TURN)
            made.answers[f"{path}/converse-stream"] = stream(
                "messageStop", {"stopReason": "end_turn"}
            )
            made.answers[f"{path}/invoke-with-response-stream"] = stream("chunk", {"bytes": "e30="})
        WORLD.append(made)
        yield
        client.cache_clear()
        WORLD.clear()
    gc.collect()  # a coroutine that nobody awaited speaks up now, and fails the last test


@pytest.fixture
def world() -> World:
    return WORLD[0]


@pytest.fixture
def tripped(process: Traced) -> Generator[Traced]:
    process.guard(Policy.none().with_limits(max_tool_calls=1), mode="enforce")
    with process.agent():
        for _ in range(2):
            with process.tool():
                pass
        yield process


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without a pause."""

    def no_pause(*_: object) -> float:
        return 0.0

    backoff: Any = botocore.retries.standard.ExponentialBackoff
    monkeypatch.setattr(backoff, "delay_amount", no_pause)


def arrivals() -> int:
    return WORLD[0].seen.total()


# ------------------------------------------------------------------ every client, in every manner


def options(url: str = "") -> dict[str, Any]:
    return {
        "region_name": "us-east-1",
        "endpoint_url": url or WORLD[0].url,
        "aws_access_key_id": "none",
        "aws_secret_access_key": "none",
        "config": Config(retries={"mode": "standard", "total_max_attempts": ATTEMPTS}),
    }


@cache
def client(service: str = "bedrock-runtime", url: str = "") -> Any:
    return SESSION.create_client(service, **options(url))


@asynccontextmanager
async def async_client(service: str = "bedrock-runtime") -> AsyncGenerator[Any]:
    async with AIO_SESSION.create_client(service, **options()) as made:
        yield made


def converse(model: str = NOVA) -> None:
    client().converse(modelId=model, messages=SAID)


def converse_stream() -> None:
    answer = client().converse_stream(modelId=NOVA, messages=SAID)
    assert list(answer["stream"]) == [{"messageStop": {"stopReason": "end_turn"}}]


def invoke(model: str = NOVA) -> None:
    answer = client().invoke_model(modelId=model, body=BODY)
    assert json.loads(answer["body"].read())


def invoke_stream() -> None:
    answer = client().invoke_model_with_response_stream(modelId=NOVA, body=BODY)
    assert list(answer["body"]) == [{"chunk": {"bytes": b"{}"}}]


async def async_converse() -> None:
    async with async_client() as made:
        await made.converse(modelId=NOVA, messages=SAID)


async def async_converse_stream() -> None:
    async with async_client() as made:
        answer = await made.converse_stream(modelId=NOVA, messages=SAID)
        assert [each async for each in answer["stream"]]


async def async_invoke() -> None:
    async with async_client() as made:
        answer = await made.invoke_model(modelId=NOVA, body=BODY)
        assert json.loads(await answer["body"].read())


async def async_invoke_stream() -> None:
    async with async_client() as made:
        answer = await made.invoke_model_with_response_stream(modelId=NOVA, body=BODY)
        assert [each async for each in answer["body"]]


CLIENTS: tuple[Any, ...] = (
    converse,
    converse_stream,
    invoke,
    invoke_stream,
    async_converse,
    async_converse_stream,
    async_invoke,
    async_invoke_stream,
)
ONE_OF_EACH: tuple[Any, ...] = (converse, async_converse)
"""One for each place."""


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_request_beyond_the_limit_does_not_leave(process: Traced, ask: Ask) -> None:
    process.guard(limit(2), mode="enforce")
    before = arrivals()

    with guarded_run():
        ask_with(ask)
        ask_with(ask)
        assert arrivals() - before == 2
        with pytest.raises(RunAborted) as raised:
            ask_with(ask)
        assert current_run().ahead == 2, "one place for each, however many layers it passes"

    assert arrivals() - before == 2
    assert type(raised.value) is RunAborted
    assert raised.value.__cause__ is None, "no retry of the client has seen it"
    assert raised.value.__context__ is None
    assert raised.value.report.rule == "llm_call_budget"


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_loop_without_any_span_is_known_by_its_calls(process: Traced, ask: Ask) -> None:
    process.guard(limit(1), mode="enforce")
    before = arrivals()
    ask_with(ask)
    with pytest.raises(RunAborted) as caught:
        ask_with(ask)
    assert (caught.value.run_id, arrivals() - before) == (CALL_ID, 1)


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_request_of_a_tripped_run_does_not_leave(tripped: Traced, ask: Ask) -> None:
    before = arrivals()

    with pytest.raises(RunAborted):
        ask_with(ask)
    assert arrivals() == before

    with guarded_run():
        ask_with(ask)
    assert arrivals() == before + 1
    assert tripped.total("loopguard.aborts", abort__hook="gate") == 1


@pytest.mark.usefixtures("tripped")
@pytest.mark.parametrize("ask", [converse, invoke])
def test_a_model_may_be_named_by_its_arn(ask: Any) -> None:
    before = arrivals()

    with pytest.raises(RunAborted):
        ask(ARN)

    assert arrivals() == before


# ----------------------------------------------------------------------------------- what passes


def embedding() -> None:
    invoke(EMBED)


def guardrail() -> None:
    client().apply_guardrail(
        guardrailIdentifier="g",
        guardrailVersion="1",
        source="INPUT",
        content=[{"text": {"text": "go"}}],
    )


def listing_models() -> None:
    client("bedrock").list_foundation_models()


def another_service() -> None:
    client("dynamodb").list_tables()


async def another_service_async() -> None:
    async with async_client("dynamodb") as made:
        await made.list_tables()


@pytest.mark.parametrize(
    "ask", [embedding, guardrail, listing_models, another_service, another_service_async]
)
def test_what_is_no_model_request_passes(tripped: Traced, ask: Ask) -> None:
    before = arrivals()

    ask_with(ask)

    assert arrivals() == before + 1
    assert tripped.total("loopguard.aborts", abort__result="ok") == 0


@pytest.mark.usefixtures("tripped")
def test_what_is_no_call_is_for_the_client_to_say(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(botocore.exceptions.ParamValidationError):
        client().converse(messages=SAID)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


# ------------------------------------------------------------------------- retries and failures


@pytest.mark.parametrize("status", [429, 500])
@pytest.mark.parametrize("ask", ONE_OF_EACH)
def test_the_retries_of_a_request_are_one_request(
    process: Traced, world: World, ask: Ask, status: int
) -> None:
    process.guard(limit(1), mode="enforce")
    world.failures += [status] * (ATTEMPTS - 1)
    before = arrivals()

    with guarded_run():
        ask_with(ask)
        assert current_run().ahead == 1
        assert arrivals() == before + ATTEMPTS
        with pytest.raises(RunAborted):
            ask_with(ask)

    assert arrivals() == before + ATTEMPTS


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("ask", ONE_OF_EACH)
def test_a_request_that_fails_gives_its_place_back(
    process: Traced, world: World, ask: Ask, status: int
) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        for _ in range(2):
            world.failures += [status] * (1 if status == 400 else ATTEMPTS)
            with pytest.raises(botocore.exceptions.ClientError):
                ask_with(ask)
            assert world.failures == []
            assert current_run().ahead == 0
        ask_with(ask)
        with pytest.raises(RunAborted):
            ask_with(ask)


def test_a_request_that_finds_nobody_gives_its_place_back(process: Traced) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        with pytest.raises(botocore.exceptions.EndpointConnectionError):
            client(url="http://127.0.0.1:9").converse(modelId=NOVA, messages=SAID)
        assert current_run().ahead == 0
        converse()


# ---------------------------------------------------------------------- patching and unpatching


def test_the_very_original_functions_come_back_with_the_last_guard(process: Traced) -> None:
    check_put_back(process, PLACES, converse)
    with guarded_run():
        for ask in CLIENTS:
            ask_with(ask)


@pytest.mark.parametrize(
    ("owner", "name", "ask"),
    [(*place, ask) for place, ask in zip(PLACES, ONE_OF_EACH, strict=True)],
)
def test_what_somebody_patched_over_ours_stays_and_is_not_patched_twice(
    process: Traced, owner: type, name: str, ask: Ask
) -> None:
    check_patched_over(process, owner, name, ask)


# ------------------------------------------------------------------------------ at the same time


def test_gathered_calls_make_exactly_as_many_requests_as_are_allowed(process: Traced) -> None:
    process.guard(limit(5), mode="enforce", abort=("gate",))
    before = arrivals()

    async def main() -> list[Any]:
        async with guarded_run(), async_client() as made:
            calls = (made.converse(modelId=NOVA, messages=SAID) for _ in range(8))
            return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = sorted(type(each).__name__ for each in asyncio.run(main()))
    assert outcomes == [*["RunAborted"] * 3, *["dict"] * 5]
    assert arrivals() == before + 5


def test_threads_make_exactly_as_many_requests_as_are_allowed(process: Traced) -> None:
    process.guard(limit(5), mode="enforce", abort=("gate",))
    before = arrivals()
    made = client()

    async def main() -> list[Any]:
        async with guarded_run():
            calls = (
                asyncio.to_thread(made.converse, modelId=NOVA, messages=SAID) for _ in range(8)
            )
            return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = sorted(type(each).__name__ for each in asyncio.run(main()))
    assert outcomes == [*["RunAborted"] * 3, *["dict"] * 5]
    assert arrivals() == before + 5
