"""The model gate in front of `aiohttp`, `requests` and `urllib3`, and a real server."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import aiohttp
import pytest
import requests
import urllib3
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from otel_loopguard import Policy, RunAborted, guarded_run
from otel_loopguard.abort.model_paths import is_model_request
from tests._gated import (
    CALL_ID,
    CHAT,
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

PLACES: tuple[tuple[type, str], ...] = (
    (aiohttp.ClientSession, "_request"),
    (requests.Session, "send"),
    (urllib3.PoolManager, "urlopen"),
    (urllib3.HTTPConnectionPool, "urlopen"),
)
"""Where the gate stands."""

WORLD: list[World] = []
GEMINI = "/v1beta/models/gemini:streamGenerateContent"


@pytest.fixture(scope="module", autouse=True)
def server() -> Generator[None]:
    with serving_world() as made:
        WORLD.append(made)
        yield
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


def arrivals() -> int:
    return WORLD[0].seen.total()


def at(path: str) -> str:
    return f"{WORLD[0].url}{path}"


# ------------------------------------------------------------------ every client, in every manner


async def aiohttp_awaited(path: str = CHAT) -> None:
    async with aiohttp.ClientSession() as session:
        response = await session.post(at(path), json=TOLD)
        await response.read()


async def aiohttp_block(path: str = GEMINI) -> None:
    async with aiohttp.ClientSession() as session, session.post(at(path), json=TOLD) as response:
        assert [chunk async for chunk in response.content.iter_any()]


async def aiohttp_base(path: str = CHAT) -> None:
    async with (
        aiohttp.ClientSession(base_url=WORLD[0].url) as session,
        session.request("post", f"{path}?alt=sse", json=TOLD),
    ):
        pass


async def aiohttp_raising(path: str = CHAT) -> None:
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        response = await session.request(method="POST", url=at(path), json=TOLD)
        await response.read()


async def aiohttp_alone(path: str = CHAT) -> None:
    async with aiohttp.request("POST", at(path), json=TOLD) as response:
        await response.read()


def requests_post(path: str = CHAT) -> None:
    requests.post(at(path), json=TOLD, timeout=9)


def requests_stream(path: str = GEMINI) -> None:
    with requests.Session() as session, session.post(at(path), json=TOLD, stream=True) as response:
        assert list(response.iter_content())


def requests_prepared(path: str = CHAT) -> None:
    with requests.Session() as session:
        session.send(request=requests.Request("POST", at(path), json=TOLD).prepare())


def requests_adapter(path: str = CHAT) -> None:
    with closing(HTTPAdapter()) as adapter:
        adapter.send(requests.Request("POST", at(path), json=TOLD).prepare())


def urllib3_manager(path: str = CHAT) -> None:
    with urllib3.PoolManager() as manager:
        manager.request("POST", at(path), body=json.dumps(TOLD))


def urllib3_stream(path: str = GEMINI) -> None:
    with urllib3.PoolManager() as manager:
        response = manager.urlopen(
            method="POST", url=at(path), body=json.dumps(TOLD), preload_content=False
        )
        assert list(response.stream())


def urllib3_pool(path: str = CHAT) -> None:
    with urllib3.connection_from_url(WORLD[0].url) as pool:
        pool.urlopen("POST", path, json.dumps(TOLD).encode(), {"accept": "*/*"}, 3)


CLIENTS: tuple[Any, ...] = (
    aiohttp_awaited,
    aiohttp_block,
    aiohttp_base,
    aiohttp_raising,
    aiohttp_alone,
    requests_post,
    requests_stream,
    requests_prepared,
    requests_adapter,
    urllib3_manager,
    urllib3_stream,
    urllib3_pool,
)
ONE_OF_EACH: tuple[Any, ...] = (aiohttp_awaited, requests_post, urllib3_manager, urllib3_pool)
"""One for each place."""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_beyond_the_limit_does_not_leave(process: Traced, client: Ask) -> None:
    process.guard(limit(2), mode="enforce")
    before = arrivals()

    with guarded_run():
        ask_with(client)
        ask_with(client)
        assert arrivals() - before == 2
        with pytest.raises(RunAborted) as raised:
            ask_with(client)
        assert current_run().ahead == 2, "one place for each, however many layers it passes"

    assert arrivals() - before == 2
    assert type(raised.value) is RunAborted
    assert raised.value.__cause__ is None, "no retry of the client has seen it"
    assert raised.value.__context__ is None
    assert raised.value.report.rule == "llm_call_budget"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_loop_without_any_span_is_known_by_its_calls(process: Traced, client: Ask) -> None:
    process.guard(limit(1), mode="enforce")
    before = arrivals()
    ask_with(client)
    with pytest.raises(RunAborted) as caught:
        ask_with(client)
    assert (caught.value.run_id, arrivals() - before) == (CALL_ID, 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_of_a_tripped_run_does_not_leave(tripped: Traced, client: Ask) -> None:
    before = arrivals()

    with pytest.raises(RunAborted):
        ask_with(client)
    assert arrivals() == before

    contextvars.Context().run(ask_with, client)
    with guarded_run():
        ask_with(client)
    assert arrivals() == before + 2, "other runs, and none"
    assert tripped.total("loopguard.aborts", abort__hook="gate") == 1


# ----------------------------------------------------------------------------------- what passes


@pytest.mark.parametrize("client", ONE_OF_EACH)
@pytest.mark.parametrize(
    "path", ["/v1/search", "/channels/1/messages", "/v1/embeddings", "/api/chat", "/v1/traces", "/"]
)
def test_what_is_no_model_request_passes(
    tripped: Traced, world: World, client: Any, path: str
) -> None:
    before = world.seen[path]

    ask_with(lambda: client(path))

    assert world.seen[path] == before + 1
    assert tripped.total("loopguard.aborts", abort__result="ok") == 0


async def aiohttp_reading() -> None:
    async with aiohttp.ClientSession() as session, session.get(at(CHAT)) as response:
        assert response.status == 200


def requests_reading() -> None:
    assert requests.get(at(CHAT), timeout=9).status_code == 200


def urllib3_reading() -> None:
    with urllib3.PoolManager() as manager:
        assert manager.request("GET", at(CHAT)).status == 200


@pytest.mark.usefixtures("tripped")
@pytest.mark.parametrize("client", [aiohttp_reading, requests_reading, urllib3_reading])
def test_reading_passes(client: Ask) -> None:
    before = arrivals()

    ask_with(client)

    assert arrivals() == before + 1


def test_telemetry_leaves_a_tripped_run(tripped: Traced, world: World) -> None:
    spans = OTLPSpanExporter(at("/v1/traces"))
    tripped.provider.add_span_processor(SimpleSpanProcessor(spans))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(at("/v1/metrics")))
    meters = MeterProvider([reader], shutdown_on_exit=False)
    before = world.seen["/v1/traces"], world.seen["/v1/metrics"]

    with tripped.tool(), pytest.raises(RunAborted):
        requests_post()
    assert world.seen["/v1/traces"] == before[0] + 1

    meters.get_meter("m").create_counter("c").add(1)
    assert meters.force_flush()
    meters.shutdown()
    assert world.seen["/v1/metrics"] > before[1]
    with pytest.raises(RunAborted):
        requests_post()


# -------------------------------------------------------------------------- what is told, and how

VERSION = "Anthropic-Version"


async def claude_session() -> None:
    async with aiohttp.ClientSession(headers={VERSION: "1"}) as session:
        await session.post(at("/v1/messages"), json={}, headers={"x": "y"})


async def claude_pairs() -> None:
    async with aiohttp.ClientSession() as session:
        await session.post(at("/v1/messages"), json={}, headers=[(VERSION, "1")])


async def claude_tuple() -> None:
    async with aiohttp.ClientSession() as session:
        await session.post(at("/v1/messages"), json={}, headers=((VERSION, "1"),))


def claude_requests() -> None:
    requests.post(at("/v1/messages"), json={}, headers={VERSION: "1"}, timeout=9)


def claude_manager() -> None:
    with urllib3.PoolManager(headers={VERSION: "1"}) as manager:
        manager.request("POST", at("/v1/messages"), body=b"{}")


def claude_pool() -> None:
    with urllib3.connection_from_url(WORLD[0].url) as pool:
        pool.urlopen("POST", "/v1/messages", b"{}", {VERSION: "1"})


def claude_pool_of_its_own() -> None:
    with urllib3.connection_from_url(WORLD[0].url, headers={VERSION: "1"}) as pool:
        pool.urlopen("POST", "/v1/messages", b"{}")


@pytest.mark.usefixtures("tripped")
@pytest.mark.parametrize(
    "client",
    [
        claude_session,
        claude_pairs,
        claude_tuple,
        claude_requests,
        claude_manager,
        claude_pool,
        claude_pool_of_its_own,
    ],
)
def test_anthropic_is_told_by_its_header_wherever_it_was_given(client: Ask) -> None:
    before = arrivals()

    with pytest.raises(RunAborted):
        ask_with(client)

    assert arrivals() == before


ARN = "arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova"


@pytest.mark.parametrize(
    ("address", "port", "told"),
    [
        ("http://127.0.0.1:11434/api/chat", None, True),
        ("http://127.0.0.1:9/api/chat", None, False),
        ("/api/chat", 11434, True),
        ("/api/chat", 9, False),
        ("/v1beta/models/gemini%3AgenerateContent?key=x", None, True),
        (f"/model/{ARN}/converse", None, True),
        (f"https://bedrock/model/{ARN.replace('/', '%2F')}/invoke?x=/", None, True),
        ("/model/amazon.titan-embed-text-v2:0/invoke", None, False),
        ("/model/cohere.rerank-v3-5%3A0/invoke", None, False),
        (f"/model/{ARN}/count-tokens", None, False),
        ("/v1/search?then=/v1/chat/completions", None, False),
        ("/v1/search#/v1/chat/completions", None, False),
    ],
)
def test_a_model_request_is_told_by_its_address(address: str, port: int, told: bool) -> None:  # noqa: FBT001 -- a table
    assert is_model_request("POST", address, (), port) is told
    assert not is_model_request("GET", address, (), port)


# ------------------------------------------------------------------------- retries and failures


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("client", ONE_OF_EACH)
def test_a_request_that_fails_gives_its_place_back(
    process: Traced, world: World, client: Ask, status: int
) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        for _ in range(3):
            world.failures.append(status)
            ask_with(client)
            assert current_run().ahead == 0
        ask_with(client)
        with pytest.raises(RunAborted):
            ask_with(client)


def test_a_failure_that_is_raised_gives_its_place_back(process: Traced, world: World) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        world.failures.append(500)
        with pytest.raises(aiohttp.ClientResponseError):
            ask_with(aiohttp_raising)
        assert current_run().ahead == 0
        ask_with(aiohttp_raising)


@pytest.mark.parametrize("path", [CHAT, "/v1/search"])
def test_headers_that_can_be_read_only_once_arrive(process: Traced, path: str) -> None:
    process.guard(limit(2), mode="enforce")

    async def ask() -> None:
        headers: Any = iter([("X-Key", "k")])
        async with (
            aiohttp.ClientSession() as session,
            session.post(at(path), json={}, headers=headers) as response,
        ):
            await response.read()

    ask_with(ask)
    assert WORLD[0].headers["X-Key"] == "k"


@pytest.mark.usefixtures("tripped")
def test_ollama_is_told_by_the_port_of_a_pool() -> None:
    with urllib3.HTTPConnectionPool("127.0.0.1", 11434) as pool, pytest.raises(RunAborted):
        pool.urlopen("POST", "/api/chat", b"{}")


async def aiohttp_nobody() -> None:
    async with aiohttp.ClientSession() as session:
        await session.post(f"http://127.0.0.1:9{CHAT}", json={})


def requests_nobody() -> None:
    requests.post(f"http://127.0.0.1:9{CHAT}", json={}, timeout=9)


def urllib3_nobody() -> None:
    with urllib3.PoolManager(retries=2) as manager:
        manager.request("POST", f"http://127.0.0.1:9{CHAT}", body=b"{}")


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (aiohttp_nobody, aiohttp.ClientConnectionError),
        (requests_nobody, requests.ConnectionError),
        (urllib3_nobody, urllib3.exceptions.MaxRetryError),
    ],
)
def test_a_request_that_finds_nobody_gives_its_place_back(
    process: Traced, client: Ask, error: type[Exception]
) -> None:
    process.guard(limit(1), mode="enforce")

    with guarded_run():
        for _ in range(2):
            with pytest.raises(error):
                ask_with(client)
            assert current_run().ahead == 0
        requests_post()


RETRIES = Retry(3, status_forcelist=[500], allowed_methods=None, backoff_factor=0)


def requests_retrying() -> None:
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=RETRIES))
        session.post(at(CHAT), json={})


def urllib3_retrying() -> None:
    with urllib3.PoolManager(retries=RETRIES) as manager:
        assert manager.request("POST", at(CHAT), body=b"{}").status == 200


@pytest.mark.parametrize("client", [requests_retrying, urllib3_retrying])
def test_the_retries_of_a_request_are_one_request(
    process: Traced, world: World, client: Ask
) -> None:
    process.guard(limit(1), mode="enforce")
    world.failures += [500, 500]
    before = world.seen[CHAT]

    with guarded_run():
        ask_with(client)
        assert current_run().ahead == 1
        with pytest.raises(RunAborted):
            ask_with(client)

    assert world.seen[CHAT] == before + 3


@pytest.mark.parametrize("client", ONE_OF_EACH)
def test_a_request_that_is_sent_elsewhere_is_one_request(
    process: Traced, world: World, client: Any
) -> None:
    process.guard(limit(1), mode="enforce")
    before = world.seen[f"/moved{CHAT}"], world.seen[CHAT]

    with guarded_run():
        ask_with(lambda: client(f"/moved{CHAT}"))
        assert current_run().ahead == 1

    assert (world.seen[f"/moved{CHAT}"], world.seen[CHAT]) == (before[0] + 1, before[1] + 1)


# ---------------------------------------------------------------------- patching and unpatching


def test_the_very_original_functions_come_back_with_the_last_guard(process: Traced) -> None:
    check_put_back(process, PLACES, requests_post)
    with guarded_run():
        for client in CLIENTS:
            ask_with(client)


@pytest.mark.parametrize(
    ("owner", "name", "client"),
    [(*place, client) for place, client in zip(PLACES, ONE_OF_EACH, strict=True)],
)
def test_what_somebody_patched_over_ours_stays_and_is_not_patched_twice(
    process: Traced, owner: type, name: str, client: Ask
) -> None:
    check_patched_over(process, owner, name, client)


def test_a_client_that_is_built_otherwise_is_told_of_once_and_works(
    process: Traced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process.guard(limit(1), mode="enforce")
    monkeypatch.setattr(aiohttp.ClientSession, "headers", None)
    before = arrivals()

    with guarded_run():
        ask_with(aiohttp_awaited)
        ask_with(aiohttp_awaited)
        assert arrivals() == before + 2
        requests_post()
        with pytest.raises(RunAborted):
            requests_post()

    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "model requests cannot be told from others at aiohttp.client.ClientSession._request"
    ]


async def aiohttp_nowhere() -> None:
    async with aiohttp.ClientSession() as session:
        await session.post("http://[127", json={})


def requests_nowhere() -> None:
    requests.post("http://[127", json={}, timeout=9)


def urllib3_nowhere() -> None:
    with urllib3.PoolManager() as manager:
        manager.request("POST", "http://[127", body=b"{}")


@pytest.mark.usefixtures("tripped")
@pytest.mark.parametrize(
    ("client", "error"),
    [
        (aiohttp_nowhere, aiohttp.InvalidURL),
        (requests_nowhere, requests.exceptions.InvalidURL),
        (urllib3_nowhere, urllib3.exceptions.LocationParseError),
    ],
)
def test_what_is_no_address_is_for_the_client_to_say(
    client: Ask, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(error):
        ask_with(client)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


LATE = """
import asyncio, sys
from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, guarded_run

guard = LoopGuardSpanProcessor(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
assert not {"aiohttp", "botocore", "requests", "urllib3"} & set(sys.modules)
import aiobotocore.client, aiohttp, botocore.session, requests, urllib3

url = sys.argv[1] + "/v1/chat/completions"
bedrock = botocore.session.Session().create_client(
    "bedrock-runtime", region_name="us-east-1", endpoint_url=sys.argv[1],
    aws_access_key_id="none", aws_secret_access_key="none",
)

async def ask():
    async with aiohttp.request("POST", url, json={}):
        pass

clients = (
    lambda: asyncio.run(ask()),
    lambda: bedrock.invoke_model(modelId="m", body="{}"),
    lambda: requests.post(url, json={}),
    lambda: urllib3.PoolManager().request("POST", url),
)
for client in clients:
    with guarded_run():
        client()
        try:
            client()
        except RunAborted as error:
            print(type(error.__cause__).__name__)
guard.shutdown()
places = (
    aiobotocore.client.AioBaseClient._make_api_call,
    aiohttp.ClientSession._request,
    botocore.client.BaseClient._make_api_call,
    requests.Session.send,
    urllib3.PoolManager.urlopen,
    urllib3.HTTPConnectionPool.urlopen,
)
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

    assert ran.stdout.splitlines() == [*["NoneType"] * 4, " ".join(["function"] * 6)], ran.stderr
    assert world.seen.total() == before + 4


# ------------------------------------------------------------------------------ at the same time


def test_parallel_threads_make_exactly_as_many_requests_as_are_allowed(process: Traced) -> None:
    process.guard(limit(5), mode="enforce")
    before = arrivals()

    def call(client: Any) -> str:
        try:
            client()
        except RunAborted:
            return "refused"
        return "left"

    with guarded_run(), ThreadPoolExecutor(12) as pool:
        jobs = [
            pool.submit(contextvars.copy_context().run, call, client)
            for client in (requests_post, urllib3_manager, urllib3_pool) * 4
        ]
        outcomes = Counter(job.result() for job in jobs)

    assert outcomes == {"left": 5, "refused": 7}
    assert arrivals() == before + 5


def test_gathered_coroutines_make_exactly_as_many_requests_as_are_allowed(process: Traced) -> None:
    process.guard(limit(5), mode="enforce", abort=("gate",))
    before = arrivals()

    async def main() -> list[Any]:
        async with guarded_run(), aiohttp.ClientSession() as session:
            calls = [session.post(at(CHAT), json={}) for _ in range(12)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            for each in outcomes:
                if isinstance(each, aiohttp.ClientResponse):
                    each.release()
            return outcomes

    outcomes = Counter(type(each).__name__ for each in asyncio.run(main()))
    assert outcomes == {"ClientResponse": 5, "RunAborted": 7}
    assert arrivals() == before + 5
