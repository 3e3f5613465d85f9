"""The scripted model server when something goes wrong: what it refuses, and whom it tells."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from otel_loopguard.testing import ModelRequest, ModelServer, model_server
from otel_loopguard.testing.scripts import OfferedTool, Script, ScriptedCall, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence


def post(server: ModelServer, *, model: str = "m", **said: Any) -> httpx.Response:
    body: dict[str, object] = {"model": model, "messages": [], **said}
    return httpx.post(f"{server.url}/chat/completions", json=body, timeout=30)


def error_of(answer: httpx.Response) -> str:
    """Return the text of what clients do not try again."""
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]["message"]


def tool(schema: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": "f", "parameters": schema}}


def waiting(server: ModelServer, threads: ThreadPoolExecutor) -> Future[httpx.Response]:
    """Ask, and return once the server has the request."""
    before = server.count()
    asked = threads.submit(post, server)
    while server.count() == before:
        threading.Event().wait(0.01)
    return asked


# ------------------------------------------------------------------- whoever waits for an answer


def test_who_waits_is_refused_with_the_reason_of_then_whatever_is_played_next() -> None:
    with ThreadPoolExecutor(1) as threads, model_server("slow:600") as server:
        asked = waiting(server, threads)
        server.refuse("the test is over")
        server.play("endless")
        assert error_of(asked.result(timeout=30)) == "the test is over"
        assert post(server).status_code == 200
    assert [each.status for each in server.requests] == [400, 200]


def test_who_waits_since_before_the_script_of_now_is_refused_too() -> None:
    with ThreadPoolExecutor(2) as threads, model_server("slow:600") as server:
        asked = [waiting(server, threads)]
        server.play("slow:500")
        asked.append(waiting(server, threads))
        server.refuse("no")
        assert [error_of(each.result(timeout=30)) for each in asked] == ["no", "no"]


def test_who_waits_since_before_the_script_of_now_is_told_that_the_server_closes() -> None:
    with ThreadPoolExecutor(1) as threads:
        with model_server("slow:600") as server:
            asked = waiting(server, threads)
            server.play("endless")
        assert error_of(asked.result(timeout=30)) == "the model server is about to close"


def test_who_waits_gets_the_answer_where_only_another_script_is_played() -> None:
    with ThreadPoolExecutor(1) as threads, model_server("slow:0.5") as server:
        asked = waiting(server, threads)
        server.play("finish:1")
        assert asked.result(timeout=30).status_code == 200


# ------------------------------------------------------------------------------- a wrong address


@pytest.mark.parametrize(("method", "path"), [("POST", "/chat/completions"), ("GET", "/v1/models")])
def test_a_wrong_path_is_told_and_is_no_model_request(method: str, path: str) -> None:
    told: list[str] = []
    with model_server(on_wrong_path=told.append) as server:
        answer = httpx.request(method, f"{server.root}{path}")
    assert answer.status_code == 404
    assert told == [answer.json()["error"]["message"]]
    assert f"serves nothing at {method} '{path}'; expected POST to one of '/v1/chat/" in told[0]
    assert (server.count(), server.requests) == (0, [])


def test_what_raises_when_it_is_told_of_a_wrong_path_is_told_itself() -> None:
    with model_server(on_wrong_path=fail) as server:
        answer = httpx.get(f"{server.root}/")
    assert answer.status_code == 404
    assert "ZeroDivisionError: division by zero" in answer.text


@pytest.mark.parametrize("port", [-1, 65_536, 70_000])
def test_a_port_that_cannot_be_is_a_value_error(port: int) -> None:
    with pytest.raises(ValueError, match=f"port={port} is no port"), model_server(port=port):
        pass


# -------------------------------------------------------------------------------- what is foreign


def fail(_told: object) -> None:
    raise ZeroDivisionError("division by zero")


def raising(_tools: Sequence[OfferedTool], _count: int) -> Turn:
    raise KeyError("missing")


def returning_nothing(_tools: Sequence[OfferedTool], _count: int) -> Any:
    return None


UNWRITABLE = Turn(calls=(ScriptedCall(name="f", arguments={"x": object()}),))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (Script(name="own", play=raising), r"KeyError: 'missing' \(.*test_model_server_trouble"),
        (Script(name="own", play=returning_nothing), "'own' returned None; expected a Turn"),
        ([UNWRITABLE], "TypeError: Encoding objects of type object is unsupported"),
    ],
    ids=["raises", "no turn", "cannot be written"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
def test_what_a_script_raises_is_refused_with_its_text(
    script: Script | list[Turn], said: str, *, stream: bool
) -> None:
    told: list[ModelRequest] = []
    with model_server(script, on_request=told.append) as server:
        answer = post(server, stream=stream)
    assert error_of(answer).startswith("the scripted model cannot answer: ")
    with pytest.raises(ValueError, match=said):
        raise ValueError(error_of(answer))
    assert [(each.status, each.usage) for each in server.requests] == [(400, None)]
    assert told == server.requests


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "required": [["a"]]}, "TypeError: unhashable type: 'list'"),
        (
            {"properties": {"a": {"type": "string", "minLength": 10**9}}},
            "minLength: 1,000,000,000 is more than the 10,000 ",
        ),
        (
            {"properties": {"a": {"type": "array", "minItems": 10**9}}},
            "minItems: 1,000,000,000 is more than the 10,000 ",
        ),
    ],
    ids=["no name", "long text", "long list"],
)
def test_a_schema_that_nothing_can_be_made_for_is_refused(schema: object, said: str) -> None:
    with model_server() as server:
        assert said in error_of(post(server, tools=[tool(schema)]))
    assert [each.status for each in server.requests] == [400]


def test_a_body_of_too_many_lists_is_refused() -> None:
    with model_server() as server:
        head = (
            b'{"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": '
        )
        body = head + b'"f", "parameters": {"a": ' + b"[" * 100_000
        answer = httpx.post(f"{server.url}/chat/completions", content=body)
    assert "RecursionError" in error_of(answer)


def test_what_raises_when_it_is_told_is_told_itself_and_noted() -> None:
    with model_server("finish:1", on_request=fail) as server:
        assert "ZeroDivisionError: division by zero (" in error_of(post(server))
        assert "ZeroDivisionError: division by zero (" in error_of(post(server, messages=1))
    assert [(each.status, each.usage) for each in server.requests] == [(400, None)] * 2


@pytest.mark.parametrize("model", ["finish:" + "9" * 5_000, "slow:" + "9" * 5_000])
def test_a_model_with_too_many_digits_is_no_script(model: str) -> None:
    with model_server() as server:
        assert post(server, model=model).status_code == 200
    assert server.count("endless") == 1


@pytest.mark.parametrize(("header", "count"), [("2", 2), ("9" * 5_000, None), ("-1", None)])
def test_a_count_of_retries_is_one_or_nothing(header: str, count: int | None) -> None:
    with model_server() as server:
        answer = httpx.post(
            f"{server.url}/chat/completions",
            json={"model": "m", "messages": []},
            headers={"x-stainless-retry-count": header},
        )
    assert (answer.status_code, server.requests[0].retry_count) == (200, count)
