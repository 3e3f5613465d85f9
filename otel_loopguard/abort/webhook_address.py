"""Where a webhook posts to. Addresses hold passwords and tokens: no error here shows one."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

from otel_loopguard.policy import PolicyError
from otel_loopguard.version import VERSION

HEADER_DELIVERY = "Loopguard-Delivery"
"""The id of the stop, in every attempt."""

HEADER_SIGNATURE = "Loopguard-Signature"
"""When it was sent, and who sent it."""

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
_OURS = (
    *("connection", "content-length", "content-type", "host", "transfer-encoding"),
    HEADER_DELIVERY.lower(),
    HEADER_SIGNATURE.lower(),
)


class Address(NamedTuple):
    """Where to post, and what the host alone may be told besides."""

    url: str
    """Without user and password."""
    host: str
    """What logs and metrics call it."""
    credentials: str | None
    """User and password, as the header `Authorization` has them."""
    is_loopback: bool
    is_plain: bool
    """Whether what is sent can be read, and changed, on the way."""


def address_of(url: object) -> Address:
    """Read an address.

    Raises:
        PolicyError: if it is none of `http` or `https` with a host.

    """
    if not isinstance(url, str):
        raise PolicyError(f"webhook: expected an address as text, got {type(url).__qualname__}")
    if not _PRINTABLE.fullmatch(url):
        expected = "an address in visible ASCII, anything else percent-encoded"
        raise PolicyError(f"webhook: expected {expected}; it is not shown, for it may hold secrets")
    parts = _split(url)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        expected = "an address such as https://hooks.example.com/path"
        scheme = "" if parts is None or not parts.scheme else f", with {parts.scheme[:20]!r}"
        raise PolicyError(f"webhook: expected {expected}, got another{scheme}")
    user, at, host_and_port = parts.netloc.rpartition("@")
    return Address(
        url=parts._replace(netloc=host_and_port, fragment="").geturl(),
        host=parts.hostname,
        credentials=_basic(unquote(user)) if at else None,
        is_loopback=_is_loopback(parts.hostname),
        is_plain=parts.scheme == "http",
    )


def headers_of(given: object, address: Address) -> dict[str, str]:
    """Return the headers that every post to an address has.

    Raises:
        PolicyError: if those given are no mapping of texts that a request can carry, or if one is
            the webhook's own.

    """
    headers = {"Content-Type": "application/json", "User-Agent": f"otel-loopguard/{VERSION}"}
    if address.credentials is not None:
        headers["Authorization"] = address.credentials
    if given is None:
        return headers
    if not isinstance(given, Mapping):
        kind = type(given).__qualname__
        raise PolicyError(f"webhook: headers: expected a mapping of texts, got {kind}")
    for name, value in cast("Mapping[object, object]", given).items():
        _check_header(name, value)
        if address.credentials is not None and str(name).lower() == "authorization":
            message = "the address has a user already; leave one of them out"
            raise PolicyError(f"webhook: headers[{name!r}]: {message}")
        headers[str(name)] = str(value)
    return headers


def _check_header(name: object, value: object) -> None:
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        # What is no name may be a whole header, with its secret.
        raise PolicyError("webhook: headers: expected a name, such as 'Authorization', as each key")
    if name.lower() in _OURS:
        raise PolicyError(f"webhook: headers[{name!r}]: the webhook sets that itself; leave it out")
    if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
        expected = "one line of visible ASCII"
        message = f"expected {expected}; the value is not shown, for it may be a secret"
        raise PolicyError(f"webhook: headers[{name!r}]: {message}")


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; `None` if it has none that a request can be made of."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        valid = parts.port != 0  # reading it checks it
    except ValueError:  # its text shows what was between the slashes
        return None
    return parts if valid else None


def _basic(user_and_password: str) -> str:
    return f"Basic {base64.b64encode(user_and_password.encode()).decode()}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
