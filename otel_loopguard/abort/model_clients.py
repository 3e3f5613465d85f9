"""The clients that the model gate stands in front of: where, and how a model request is told there.

A client is one function here and its row in `CLIENTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple, cast

from otel_loopguard.abort.model_paths import is_model_request, is_sdk_model_request


class Call(NamedTuple):
    """A call of a client's method."""

    client: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def argument(self, index: int, name: str) -> Any:
        """Return an argument by its place or its name; `None` if it was not given."""
        return self.args[index] if index < len(self.args) else self.kwargs.get(name)


class Place(NamedTuple):
    """A method that model requests pass, above the client's retries."""

    owner: type
    name: str
    is_model_request: Callable[[Call], bool]
    body: Callable[[Call], object]
    """Returns what is sent: text, bytes or the structure. May raise where that cannot be read."""
    is_async: bool = False
    status: str = "status_code"
    """The attribute of an answer that holds its HTTP status, if the method answers failures."""


def _sdk(module: ModuleType) -> Iterator[Place]:
    for base, is_async in ((module.SyncAPIClient, False), (module.AsyncAPIClient, True)):
        for client in _family(base):
            if "request" in vars(client):
                yield Place(client, "request", _is_sdk_request, _sdk_body, is_async=is_async)


def _httpx(module: ModuleType) -> Iterator[Place]:
    yield Place(module.Client, "send", _is_prepared_request, _httpx_body)
    yield Place(module.AsyncClient, "send", _is_prepared_request, _httpx_body, is_async=True)


def _aiohttp(module: ModuleType) -> Iterator[Place]:
    # `post`, `request` and `aiohttp.request` all call this one, and none of the public ones.
    session = module.ClientSession
    yield Place(
        session, "_request", _is_aiohttp_request, _aiohttp_body, is_async=True, status="status"
    )


def _requests(module: ModuleType) -> Iterator[Place]:
    yield Place(module.Session, "send", _is_prepared_request, _requests_body)


def _urllib3(module: ModuleType) -> Iterator[Place]:
    # A pool retries, the manager above it follows redirects: a request of either is one request.
    for owner in (module.PoolManager, module.HTTPConnectionPool):
        yield Place(owner, "urlopen", _is_urllib3_request, _urllib3_body, status="status")


def _botocore(module: ModuleType) -> Iterator[Place]:
    yield Place(module.BaseClient, "_make_api_call", _is_aws_request, _aws_body)


def _aiobotocore(module: ModuleType) -> Iterator[Place]:
    yield Place(module.AioBaseClient, "_make_api_call", _is_aws_request, _aws_body, is_async=True)


CLIENTS: Mapping[str, Callable[[ModuleType], Iterator[Place]]] = {
    "aiobotocore.client": _aiobotocore,
    "aiohttp": _aiohttp,
    "anthropic._base_client": _sdk,
    "botocore.client": _botocore,
    "httpx": _httpx,
    "httpx2": _httpx,
    "openai._base_client": _sdk,
    "requests": _requests,
    "urllib3": _urllib3,
}
"""The places of each client, by the module that has them all once it is imported."""


def _family(base: type) -> Iterator[type]:
    """Yield a client class and its subclasses: an instrumentation may have patched those."""
    yield base
    derived: type
    for derived in base.__subclasses__():
        yield from _family(derived)


def _is_sdk_request(call: Call) -> bool:
    options = call.argument(1, "options")
    return is_sdk_model_request(
        str(getattr(options, "method", "")), str(getattr(options, "url", ""))
    )


def _is_prepared_request(call: Call) -> bool:
    request = call.argument(0, "request")
    return is_model_request(str(request.method), request.url, request.headers or ())


def _is_aiohttp_request(call: Call) -> bool:
    method = str(call.argument(0, "method"))
    if method.upper() != "POST":  # most are not, and what follows takes time
        return False
    session = call.client
    address = session._build_url(call.argument(1, "str_or_url"))  # noqa: SLF001 -- with its base
    headers: Any = call.kwargs.get("headers")
    # What can be read only once is left to the request.
    can_be_read_again = isinstance(headers, (Mapping, list, tuple))
    names: dict[str, str] = dict(cast("Any", headers)) if can_be_read_again else {}
    return is_model_request(method, address, (*session.headers, *names))


def _is_urllib3_request(call: Call) -> bool:
    headers = call.argument(3, "headers")
    return is_model_request(
        str(call.argument(0, "method")),
        str(call.argument(1, "url")),
        call.client.headers if headers is None else headers,
        getattr(call.client, "port", None),
    )


def _is_aws_request(call: Call) -> bool:
    operation = call.client.meta.service_model.operation_model(call.argument(0, "operation_name"))
    model = str(call.argument(1, "api_params").get("modelId", ""))
    path = operation.http["requestUri"].replace("{modelId}", model)
    return is_model_request(operation.http["method"], path, ())


def _sdk_body(call: Call) -> object:
    return call.argument(1, "options").json_data


def _httpx_body(call: Call) -> object:
    return call.argument(0, "request").content


def _requests_body(call: Call) -> object:
    return call.argument(0, "request").body


def _aiohttp_body(call: Call) -> object:
    return call.kwargs.get("json") or call.kwargs.get("data")


def _urllib3_body(call: Call) -> object:
    return call.kwargs.get("json") or call.argument(2, "body")


def _aws_body(call: Call) -> object:
    sent = call.argument(1, "api_params")
    return sent.get("body", sent)
