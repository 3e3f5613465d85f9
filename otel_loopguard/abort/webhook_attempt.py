"""One attempt to post: what is sent, and what came of it, in words that show no secret."""

from __future__ import annotations

import email.utils
import hashlib
import hmac
import http.client
import time
import urllib.error
import urllib.request
from typing import NamedTuple

from otel_loopguard.abort.webhook_address import HEADER_DELIVERY, HEADER_SIGNATURE, Address


class Answer(NamedTuple):
    """What came of one attempt."""

    said: str
    """In words, without anything that the receiver or the address could have put in."""
    status: int = 0
    """0 if there was no answer."""
    retry_after: str | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver has taken it."""
        return 200 <= self.status < 300  # noqa: PLR2004 -- HTTP's own numbers, here and below

    @property
    def is_final(self) -> bool:
        """Whether asking again would bring the same."""
        return 0 < self.status < 500 and self.status != 429  # noqa: PLR2004

    @property
    def pause_s(self) -> float:
        """Seconds that the receiver asks to wait: a number of them, or until a date."""
        text = (self.retry_after or "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:9])
        try:
            return email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):  # absent, or no date
            return 0.0


class Sender:
    """Makes single attempts.

    Args:
        address: where to post.
        headers: sent with every attempt.
        secret: signs them; `None` for no signature.

    """

    __slots__ = ("_address", "_headers", "_opener", "_secret", "_suppress")

    def __init__(self, address: Address, headers: dict[str, str], secret: bytes | None) -> None:
        from opentelemetry.instrumentation.utils import (  # noqa: PLC0415 -- loads propagators
            suppress_instrumentation,
        )

        self._suppress = suppress_instrumentation
        self._address = address
        self._headers = headers
        self._secret = secret
        self._opener = _opener(proxies={} if address.is_loopback else None)

    def send(self, text: bytes, delivery: str, timeout_s: float) -> Answer:
        """Post once; `delivery` is the id that all attempts of one delivery share."""
        headers = {**self._headers, HEADER_DELIVERY: delivery}
        if self._secret is not None:
            headers[HEADER_SIGNATURE] = _signature(self._secret, text)
        post = urllib.request.Request(  # noqa: S310 -- the scheme was looked at
            self._address.url, text, headers, method="POST"
        )
        try:
            # What is instrumented would make spans of the guard's own posts.
            with self._suppress(), self._opener.open(post, timeout=timeout_s) as answer:
                return Answer("", answer.status)
        except urllib.error.HTTPError as error:
            with error:
                said = f"was answered with status {error.code}"
                return Answer(said, error.code, error.headers.get("Retry-After"))
        except (OSError, ValueError, http.client.HTTPException) as error:  # or a bad proxy variable
            return Answer(f"got no answer, {_cause_of(error)}")


def _opener(proxies: dict[str, str] | None) -> urllib.request.OpenerDirector:
    """Return what makes requests; proxies are those of the environment if `None`.

    It follows no redirection: signature and credentials are for one receiver.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _signature(secret: bytes, text: bytes) -> str:
    at_s = str(int(time.time()))
    signed = hmac.new(secret, at_s.encode() + b"." + text, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={signed}"


def _cause_of(error: BaseException) -> str:
    """Say what went wrong. A text of other exceptions may repeat what was sent."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    kind = type(reason).__qualname__
    if isinstance(reason, OSError) and isinstance(reason.strerror, str):
        return f"{kind}: {reason.strerror}"
    return kind
