"""`webhook`: what it sends, how often, how it is signed, and what nobody gets to read."""

from __future__ import annotations

import contextlib
import email.utils
import functools
import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import httpx
import pytest
from opentelemetry.instrumentation.utils import is_http_instrumentation_enabled

from otel_loopguard import (
    AbortRequest,
    LoopGuard,
    Policy,
    PolicyError,
    RunAborted,
    RunReport,
    SpanKey,
    Step,
    Violation,
    guarded_run,
    webhook,
)
from otel_loopguard.abort.hooks import name_of
from tests._tracing import Traced

SECRET = "hunter2"
PATH = "/v1/chat/completions"
"""What the model gate takes for a model request, wherever it goes."""


class Post(NamedTuple):
    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A real server on loopback that answers as told, the last answer again and again."""

    def __init__(self, *answers: int | tuple[int, dict[str, str]]) -> None:
        self.posts: list[Post] = []
        self.answers = list(answers)
        self.opened = threading.Event()
        """Until then, an answer of 0 does not come."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def answer(self, post: Post) -> tuple[int, dict[str, str]]:
        self.posts.append(post)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == 0:
            self.opened.wait(20)
            answer = 200
        return answer if isinstance(answer, tuple) else (answer, {})


@contextmanager
def receiving(*answers: int | tuple[int, dict[str, str]]) -> Generator[Receiver]:
    receiver = Receiver(*answers or (204,))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, given = receiver.answer(Post(headers, body, self.path))
            with contextlib.suppress(ConnectionError):  # who was kept waiting has hung up
                self.send_response(status)
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()

        do_GET = do_POST  # noqa: N815 -- what a redirection that is followed would be

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_port
        serving = functools.partial(server.serve_forever, poll_interval=0.005)
        thread = threading.Thread(target=serving, name="receiver", daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.opened.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def tripped() -> tuple[Violation, RunReport]:
    """Return a trip and its report, of a run whose arguments and results are secret."""
    guard = LoopGuard(policy=Policy.none(), max_tool_calls=1)
    for _ in range(2):
        step = Step(
            kind="tool",
            name="search",
            agent="scout",
            arguments={"q": SECRET},
            result=SECRET,
            call_id=f"call-{SECRET}",
            span=SpanKey(1, 2),
        )
        guard.check(step)
    report = guard.end()
    assert report.trip is not None
    return report.trip, report


def with_url(options: dict[str, Any]) -> dict[str, Any]:
    return {"url": "https://hooks.example.com/", **options}


def request(**options: Any) -> AbortRequest:
    violation, report = tripped()
    given: dict[str, Any] = {
        "run_id": "order-4711",
        "run_span": SpanKey(1, 1),
        "timeout_s": 20.0,
        **options,
    }
    return AbortRequest(violation=violation, report=report, **given)


# ------------------------------------------------------------------------------- what it sends


def test_it_says_which_run_is_to_stop_and_why(receiver: Receiver) -> None:
    told = request(attempt=2)
    webhook(receiver.url)(told)

    (post,) = receiver.posts
    assert post.headers["content-type"] == "application/json"
    assert post.headers["loopguard-delivery"] == told.id
    assert "loopguard-signature" not in post.headers
    assert post.path == PATH
    content = post.content
    assert content.pop("report") == {
        "status": "running",
        "steps": 1,
        "model_calls": 0,
        "tool_calls": 1,
        "last_tool": "search",
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 0.0,
        "duration_s": told.report.duration_s,
    }
    assert content == {
        "id": told.id,
        "run_id": "order-4711",
        "attempt": 2,
        "message": (
            "tool_call_budget: tool 'search' by agent 'scout' at step 2: 2 against a threshold "
            "of 1 (stop)"
        ),
        "rule": "tool_call_budget",
        "reason": "MAX_TOOL_CALLS_EXCEEDED",
        "action": "abort",
        "phase": "pre",
        "step": 2,
        "count": 2,
        "threshold": 1,
        "kind": "tool",
        "tool": "search",
        "agent": "scout",
        "wasted_steps": 0,
        "wasted_tokens": 0,
        "wasted_cost_usd": 0.0,
        "span": {"trace_id": f"{1:032x}", "span_id": f"{2:016x}"},
        "run_span": {"trace_id": f"{1:032x}", "span_id": f"{1:016x}"},
    }
    assert SECRET not in post.body.decode()


def test_what_is_no_unicode_is_sent_all_the_same(receiver: Receiver) -> None:
    webhook(receiver.url)(request(run_id="cut \ud800 off"))

    assert receiver.posts[0].content["run_id"] == "cut \ud800 off"


def test_the_user_may_say_what_to_send(receiver: Receiver) -> None:
    webhook(
        receiver.url,
        body=lambda told: {"text": told.violation.message},
        headers={"X-Routing-Key": SECRET},
    )(request())

    (post,) = receiver.posts
    assert list(post.content) == ["text"]
    assert post.headers["x-routing-key"] == SECRET


def test_user_and_password_of_an_address_are_sent_as_such(receiver: Receiver) -> None:
    webhook(receiver.url.replace("127.0.0.1", "ops:p%40ss@127.0.0.1") + "?key=1#part")(request())

    (post,) = receiver.posts
    assert post.headers["authorization"] == "Basic b3BzOnBAc3M="
    assert post.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert post.path == f"{PATH}?key=1"


@pytest.mark.parametrize("secret", [SECRET, SECRET.encode()], ids=["text", "bytes"])
def test_a_signature_is_of_the_time_and_the_body(receiver: Receiver, secret: str | bytes) -> None:
    before = int(time.time())
    webhook(receiver.url, secret=secret)(request())

    (post,) = receiver.posts
    signed = dict(part.split("=", 1) for part in post.headers["loopguard-signature"].split(","))
    message = signed["t"].encode() + b"." + post.body
    assert signed["v1"] == hmac.new(b"hunter2", message, hashlib.sha256).hexdigest()
    assert before <= int(signed["t"]) <= time.time()


# ------------------------------------------------------------------------------- how often


@pytest.mark.parametrize("answer", [429, 500, 503])
def test_what_may_pass_is_tried_again_as_the_same_delivery(answer: int) -> None:
    with receiving(answer, answer, 200) as receiver:
        started = time.monotonic()
        webhook(receiver.url, secret=SECRET)(request())
        assert time.monotonic() - started >= 0.29, "0.1 and 0.2 seconds between them"

    assert len(receiver.posts) == 3
    assert len({(post.body, post.headers["loopguard-delivery"]) for post in receiver.posts}) == 1


@pytest.mark.parametrize("answer", [400, 401, 404, 410])
def test_what_will_not_pass_is_not(answer: int) -> None:
    with receiving(answer) as receiver:
        with pytest.raises(ConnectionError, match=f"status {answer} .attempt 1 of 3"):
            webhook(receiver.url)(request())
        assert len(receiver.posts) == 1


def test_there_is_an_end_of_it() -> None:
    with receiving(500) as receiver:
        with pytest.raises(ConnectionError, match=r"status 500 \(attempt 2 of 2\)"):
            webhook(receiver.url, attempts=2)(request())
        assert len(receiver.posts) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_not_followed(receiver: Receiver, status: int) -> None:
    with receiving((status, {"Location": receiver.url})) as first:
        with pytest.raises(ConnectionError, match=f"status {status} .attempt 1 of 3"):
            webhook(first.url, secret=SECRET)(request())
        assert len(first.posts) == 1
    assert receiver.posts == []


def test_a_connection_that_is_refused_is_tried_again() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    expected = "ConnectionRefusedError: Connection refused .attempt 2 of 2"
    with pytest.raises(ConnectionError, match=expected):
        webhook(f"http://127.0.0.1:{port}/", attempts=2)(request())


def test_an_attempt_that_hangs_leaves_time_for_another() -> None:
    with receiving(0, 204) as receiver:
        webhook(receiver.url, timeout_s=0.05)(request())
        assert len(receiver.posts) == 2


def test_it_never_takes_longer_than_a_hook_may() -> None:
    with receiving(0) as receiver:
        started = time.monotonic()
        with pytest.raises(ConnectionError, match="TimeoutError, and no time is left"):
            webhook(receiver.url, attempts=99, timeout_s=9)(request(timeout_s=0.4))
        assert time.monotonic() - started < 5, "one attempt alone may take 9 seconds"
        assert len(receiver.posts) == 1


def test_there_is_time_left_to_say_that_it_was_in_vain(process: Traced) -> None:
    with receiving(0) as receiver:
        hook = webhook(receiver.url, timeout_s=9)
        policy = Policy.none().with_limits(max_steps=1)
        process.guard(policy, hook_timeout_s=1.0, abort_hooks=[hook], abort=())
        with process.agent():
            process.work(1)
    assert process.total("loopguard.aborts", abort__result="timeout") == 0
    assert process.total("loopguard.aborts", abort__result="failed") == 1


@pytest.mark.parametrize("is_date", [False, True])
def test_an_answer_says_when_to_try_again(*, is_date: bool) -> None:
    when = email.utils.formatdate(time.time() + 2, usegmt=True) if is_date else "1"
    with receiving((503, {"Retry-After": when}), 204) as receiver:
        started = time.monotonic()
        webhook(receiver.url)(request())
        assert time.monotonic() - started >= 0.9
        assert len(receiver.posts) == 2


@pytest.mark.parametrize("when", ["30", "9" * 40, "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_who_asks_to_wait_for_longer_than_there_is_time_is_not_waited_for(when: str) -> None:
    with receiving((429, {"Retry-After": when})) as receiver:
        started = time.monotonic()
        with pytest.raises(ConnectionError, match="status 429, and no time is left"):
            webhook(receiver.url)(request(timeout_s=2.0))
        assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("when", ["", "-5", "soon", "²", "Fri, 31 Dec 1999 23:59:59 GMT"])
def test_what_says_nothing_of_use_is_passed_over(when: str) -> None:
    with receiving((503, {"Retry-After": when.encode().decode("latin-1")}), 204) as receiver:
        started = time.monotonic()
        webhook(receiver.url)(request())
        assert time.monotonic() - started < 1.0


# ------------------------------------------------------------------------------- secrets


def test_nothing_names_more_than_the_host(
    caplog: pytest.LogCaptureFixture, process: Traced
) -> None:
    """Not where it fails either, and not through a server that repeats what it is sent."""
    with echoing() as port:
        hook = webhook(
            f"http://{SECRET}:{SECRET}@127.0.0.1:{port}/{SECRET}?key={SECRET}",
            secret=SECRET,
            headers={"X-Key": SECRET},
        )
        process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[hook], abort=())
        with process.agent():
            process.work(1)
        with pytest.raises(ConnectionError) as raised:
            hook(request())

    assert process.total("loopguard.aborts", abort__hook="webhook(127.0.0.1)") == 1
    assert "abort hook webhook(127.0.0.1) raised ConnectionError" in caplog.text
    assert "BadStatusLine (attempt 3 of 3)" in str(raised.value)
    assert raised.value.__context__ is None
    shown = [caplog.text, repr(hook), name_of(hook), repr(raised.value)]
    assert [text for text in shown if SECRET in text] == []


@contextmanager
def echoing() -> Generator[int]:
    """Serve what says back what it is told."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(connection.recv(65_536))

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=serve, name="echo", daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "options",
    [
        {"url": SECRET},
        {"url": f"ftp://{SECRET}/"},
        {"url": f"https:///{SECRET}"},
        {"url": f"https://host:{SECRET}/"},
        {"url": f"https://host:0/{SECRET}"},
        {"url": f"https://[::1/{SECRET}"},
        {"url": f"https://a..b/{SECRET}"},
        {"url": f"https://host/{SECRET} b"},
        {"url": f"https://host/{SECRET}\u00e9"},
        {"headers": {"X-Key": f"{SECRET}\r\nX: y"}},
        {"headers": {f"Authorization: Bearer {SECRET}": ""}},
        {"headers": {"X-Key": f"{SECRET}\u00e9"}},
        {"url": f"https://{SECRET}@host/", "headers": {"authorization": SECRET}},
    ],
)
def test_an_error_about_them_does_not_show_them(options: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"^webhook: ") as raised:
        webhook(**with_url(options))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": 5}, "expected an address as text, got int"),
        ({"url": "mailto:a@b"}, "expected an address such as .*, got another, with 'mailto'"),
        ({"secret": ""}, "secret: expected a text or bytes that are not empty"),
        ({"secret": 5}, "secret: expected a text or bytes"),
        ({"headers": ["a"]}, "headers: expected a mapping of texts, got list"),
        (
            {"headers": {"a b": "c"}},
            "headers: expected a name, such as 'Authorization', as each key",
        ),
        ({"headers": {"Host": "c"}}, "'Host'.: the webhook sets that itself"),
        ({"headers": {"LOOPGUARD-SIGNATURE": "c"}}, "the webhook sets that itself"),
        ({"headers": {"a": 5}}, "'a'.: expected one line of visible ASCII"),
        ({"body": {"text": "x"}}, "body: expected a callable that takes an AbortRequest, got dict"),
        (
            {"timeout_s": 0},
            "timeout_s: expected a number of seconds above 0, of a million at most, got 0",
        ),
        (
            {"timeout_s": float("nan")},
            "timeout_s: expected a number of seconds above 0, of a million at most, got nan",
        ),
        (
            {"timeout_s": True},
            "timeout_s: expected a number of seconds above 0, of a million at most, got True",
        ),
        ({"attempts": 0}, "attempts: expected a whole number above 0, got 0"),
        ({"attempts": 1.5}, "attempts: expected a whole number above 0, got 1.5"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=f"^webhook: .*{said}"):
        webhook(**with_url(options))


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://hooks.example.com/hunter2", True),
        ("https://hooks.example.com/hunter2", False),
        ("http://localhost:80/hunter2", False),
        ("http://127.8.0.1/hunter2", False),
        ("http://[::1]:5/hunter2", False),
    ],
)
def test_what_can_be_read_on_the_way_is_told_of(
    caplog: pytest.LogCaptureFixture, url: str, *, warned: bool
) -> None:
    webhook(url)

    assert [record.levelno for record in caplog.records] == [logging.WARNING] * warned
    assert SECRET not in caplog.text


# ------------------------------------------------------------------ through the processor


def test_a_webhook_that_failed_is_asked_again_as_the_same_delivery(process: Traced) -> None:
    with receiving(400, 204) as receiver:
        hook = webhook(receiver.url)
        process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[hook], abort=())
        with process.agent():
            process.work(3)

    first, second = receiver.posts
    assert [first.content["attempt"], second.content["attempt"]] == [1, 2]
    assert first.headers["loopguard-delivery"] == second.headers["loopguard-delivery"]
    labels = {"abort__hook": "webhook(127.0.0.1)"}
    assert process.total("loopguard.abort.requests", **labels) == 2
    assert process.total("loopguard.aborts", abort__result="failed", **labels) == 1
    assert process.total("loopguard.aborts", abort__result="ok", **labels) == 1


def test_every_run_is_a_delivery_of_its_own(process: Traced, receiver: Receiver) -> None:
    hook = webhook(receiver.url)
    process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[hook], abort=())
    for _ in range(2):
        with guarded_run("order-4711"), process.agent():
            process.work(1)

    assert len({post.headers["loopguard-delivery"] for post in receiver.posts}) == 2


def test_the_gate_lets_its_posts_pass_and_not_those_of_the_run(
    process: Traced, receiver: Receiver
) -> None:
    """It posts to a path of model requests, which the tripped run cannot."""
    process.guard(
        Policy.none().with_limits(max_llm_calls=1),
        mode="enforce",
        abort_hooks=[webhook(receiver.url)],
    )
    with httpx.Client() as client, pytest.raises(RunAborted), guarded_run():
        for _ in range(3):
            client.post(receiver.url, json={"of": "the run"})

    assert [next(iter(post.content)) for post in receiver.posts] == ["of", "id"]
    assert process.total("loopguard.aborts", abort__result="ok") == 2, "gate and webhook"


def test_its_posts_make_no_spans(
    monkeypatch: pytest.MonkeyPatch, process: Traced, receiver: Receiver
) -> None:
    """An instrumentation of the standard library's client is told to keep still."""
    asked: list[bool] = []
    real = HTTPConnection.request

    def instrumented(self: HTTPConnection, *args: Any, **options: Any) -> None:
        asked.append(is_http_instrumentation_enabled())
        if asked[-1]:
            with process.tracer.start_as_current_span("POST"):
                return real(self, *args, **options)
        return real(self, *args, **options)

    monkeypatch.setattr(HTTPConnection, "request", instrumented)
    hook = webhook(receiver.url)
    process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[hook], abort=())
    with process.agent():
        process.work(1)

    assert asked == [False]
    assert "POST" not in {span.name for span in process.spans}
    assert len(receiver.posts) == 1


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    webhook(receiver.url)(request())

    assert len(receiver.posts) == 1


def test_a_proxy_of_the_environment_is_asked_for_others(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{receiver.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    webhook("http://hooks.example.com/path")(request())

    assert receiver.posts[0].path == "http://hooks.example.com/path"
