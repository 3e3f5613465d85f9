"""The clients that the model gate stands in front of: where, and how a model request is told there.

A client is one function here and its row in `CLIENTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from otel_loopguard.abort.model_paths import is_model_request, is_sdk_model_request

RequestTest = Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]
"""Whether a call of a function is a model request: by its client, arguments and keywords."""


class Place(NamedTuple):
    """A method that model requests pass, above the client's retries."""

    owner: type
    name: str
    is_model_request: RequestTest
    is_async: bool = False
    status: str = "status_code"
    """The attribute of an answer that holds its HTTP status, if the method answers failures."""


def _sdk(module: ModuleType) -> Iterator[Place]:
    for base, is_async in ((module.SyncAPIClient, False), (module.AsyncAPIClient, True)):
        for client in _family(base):
            if "request" in vars(client):
                yield Place(client, "request", _is_sdk_request, is_async=is_async)


def _httpx(module: ModuleType) -> Iterator[Place]:
    yield Place(module.Client, "send", _is_prepared_request)
    yield Place(module.AsyncClient, "send", _is_prepared_request, is_async=True)


CLIENTS: Mapping[str, Callable[[ModuleType], Iterator[Place]]] = {
    "anthropic._base_client": _sdk,
    "httpx": _httpx,
    "httpx2": _httpx,
    "openai._base_client": _sdk,
}
"""The places of each client, by the module that has them all once it is imported."""


def _family(base: type) -> Iterator[type]:
    """Yield a client class and its subclasses: an instrumentation may have patched those."""
    yield base
    derived: type
    for derived in base.__subclasses__():
        yield from _family(derived)


def _is_sdk_request(_client: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    options = kwargs.get("options", args[1] if len(args) > 1 else None)
    return is_sdk_model_request(
        str(getattr(options, "method", "")), str(getattr(options, "url", ""))
    )


def _is_prepared_request(_client: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    request = args[0] if args else kwargs["request"]
    return is_model_request(str(request.method), str(request.url), request.headers or ())
