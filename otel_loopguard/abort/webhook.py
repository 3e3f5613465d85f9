"""`webhook`: an abort hook that posts what happened to an address, signed, and again if need be."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping

import msgspec

from otel_loopguard.abort.hooks import AbortHook, AbortRequest
from otel_loopguard.abort.webhook_address import address_of, headers_of
from otel_loopguard.abort.webhook_attempt import Answer, Sender
from otel_loopguard.options.errors import wrong
from otel_loopguard.options.kinds import seconds_of
from otel_loopguard.policy import PolicyError
from otel_loopguard.steps import SpanKey

_SHARE = 0.9
"""Of the time that a hook has, what is used: the rest is for saying why it was in vain."""

_PAUSE_S = 0.1
"""Before the second attempt; twice that before the third, and so on."""

_FIGURES = (
    "status",
    "steps",
    "model_calls",
    "tool_calls",
    "last_tool",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "duration_s",
)
"""What is sent of a report. Its trace and the ids of open calls stay here."""

_logger = logging.getLogger(__name__)


def webhook(
    url: str,
    *,
    secret: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    body: Callable[[AbortRequest], object] | None = None,
    timeout_s: float = 1.0,
    attempts: int = 3,
) -> AbortHook:
    """Return a hook that posts to an address, as JSON, that a run is to stop, and why.

        LoopGuardSpanProcessor(abort_hooks=[webhook("https://hooks.example.com/loopguard")])

    An answer of 2xx is a delivery. No answer, 429 and 5xx are tried again after 0.1 seconds, then
    0.2, or when the answer says (`Retry-After`); every other answer, redirections too, is final.
    It all fits into the time that a hook has (`hook_timeout_s`, 2 seconds: an attempt that hangs
    for one leaves time for another), because the run waits for it. What was not delivered is
    counted as `failed`, and tried anew while steps of the run still start.

    The header `Loopguard-Delivery` is the id of the stop: a receiver that has seen it has seen this
    one. With a secret, `Loopguard-Signature: t=<seconds since 1970>,v1=<hexadecimal>` is the
    HMAC-SHA256 of `<t>.<body>`. Errors, logs and metrics name the host and nothing else of an
    address. Proxies are those of the environment; for this machine there is none.

    Args:
        url: `https://...`, or `http://...` for this machine and networks that you trust. A user and
            password in it are sent as `Authorization`.
        secret: what the receiver checks signatures with; none are made if `None`.
        headers: sent besides, such as `{"Authorization": "Bearer ..."}`.
        body: what to send instead, from the request: anything that `json.dumps` takes. Arguments,
            results and messages are in neither.
        timeout_s: seconds that one attempt may wait: to connect, and for each part of the answer.
        attempts: how often to try, at most.

    Raises:
        PolicyError: for an address, a header, a secret or a number that cannot be used.

    """
    address = address_of(url)
    sent = headers_of(headers, address)
    _check(secret, body, timeout_s, attempts)
    if address.is_plain and not address.is_loopback:
        _logger.warning(
            "webhook(%s): what is sent by http can be read on the way; use https", address.host
        )
    sender = Sender(address, sent, secret.encode() if isinstance(secret, str) else secret)

    def post(request: AbortRequest) -> None:
        content = described(request) if body is None else body(request)
        text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        deadline_s = time.monotonic() + _SHARE * request.timeout_s
        answer, tried = _insist(
            lambda left_s: sender.send(text, request.id, min(timeout_s, left_s)),
            deadline_s,
            attempts,
        )
        if not answer.is_delivered:
            raise ConnectionError(f"{name}: {answer.said} (attempt {tried} of {attempts})")

    post.__qualname__ = name = f"webhook({address.host})"
    return post


def described(request: AbortRequest) -> dict[str, object]:
    """Return what a webhook posts of a request: names and figures, no content."""
    violation = msgspec.structs.asdict(request.violation)
    violation["span"] = _shown(request.violation.span)
    return {
        "id": request.id,
        "run_id": request.run_id,
        "attempt": request.attempt,
        "message": request.violation.message,
        **violation,
        "run_span": _shown(request.run_span),
        "report": {name: getattr(request.report, name) for name in _FIGURES},
    }


def _insist(
    attempt: Callable[[float], Answer], deadline_s: float, attempts: int
) -> tuple[Answer, int]:
    """Try until there is a final answer, or no time or attempt is left; say how often."""
    pause_s, tried = _PAUSE_S, 0
    while True:
        answer, tried = attempt(max(deadline_s - time.monotonic(), 0.001)), tried + 1
        if answer.is_delivered or answer.is_final or tried == attempts:
            return answer, tried
        wait_s = max(pause_s, answer.pause_s)
        if time.monotonic() + wait_s >= deadline_s:
            return answer._replace(said=f"{answer.said}, and no time is left to try again"), tried
        time.sleep(wait_s)
        pause_s *= 2


def _shown(span: SpanKey | None) -> dict[str, str] | None:
    if span is None:
        return None
    return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}


def _check(secret: object, body: object, timeout_s: object, attempts: object) -> None:
    if secret is not None and not (isinstance(secret, (str, bytes)) and secret):
        message = "expected a text or bytes that are not empty; None if nothing is to be signed"
        raise PolicyError(f"webhook: secret: {message}")
    if body is not None and not callable(body):
        expected = "a callable that takes an AbortRequest"
        raise PolicyError(f"webhook: body: expected {expected}, got {type(body).__qualname__}")
    seconds_of(timeout_s, "webhook: timeout_s")
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise wrong("webhook: attempts", "a whole number above 0", attempts)
