"""The model gate: a model request of a refused run does not leave.

It stands where model requests pass whatever the framework: at the `request` method of the `openai`
and `anthropic` clients, above their retries, so that the caller gets the exception as it is; and at
`send` of `httpx` and `httpx2` for everything else. Only requests that look like model requests are
asked about; everything else passes unseen. Modules are patched when they are imported, and put back
as they were when the last guard leaves.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Protocol, cast

import wrapt

MODEL_PATH = re.compile(
    r"/(chat/completions|completions|responses|messages)$"
    r"|:(stream)?generateContent$"
    r"|/api/(chat|generate)$"
    r"|/(converse|invoke)(-stream|-with-response-stream)?$",
    re.IGNORECASE,
)
"""Paths of model requests: OpenAI and its many likes, Anthropic, Gemini, Ollama, Bedrock."""


class Pass(Protocol):
    """A request that was let through."""

    def fail(self) -> None:
        """Hear that the request failed."""
        ...


class Gatekeeper(Protocol):
    """Says whether a model request may leave."""

    def admit(self) -> Pass | None:
        """Let the request of the calling code through, or raise `RunAborted`."""
        ...


Wrapped = Callable[..., Any]
RequestTest = Callable[[tuple[Any, ...], dict[str, Any]], bool]

_keepers: list[Gatekeeper] = []
_patched: list[tuple[type, str, object]] = []
_hooked: set[str] = set()
_lock = threading.RLock()
_asked: ContextVar[bool] = ContextVar("loopguard_asked", default=False)
"""A layer above has asked already: an SDK above its HTTP client, a subclass above its base."""


def guard_requests(keeper: Gatekeeper) -> None:
    """Ask this keeper about every model request from now on."""
    with _lock:
        if keeper not in _keepers:
            _keepers.append(keeper)
        if not _patched:
            for name, patch in _MODULES.items():
                if name in sys.modules:
                    patch(sys.modules[name])
                if name not in _hooked:
                    _hooked.add(name)
                    wrapt.register_post_import_hook(_imported, name)


def leave_requests(keeper: Gatekeeper) -> None:
    """Ask this keeper no more; with the last one gone, put every module back as it was."""
    with _lock:
        if keeper in _keepers:
            _keepers.remove(keeper)
        if not _keepers:
            for owner, name, original in reversed(_patched):
                setattr(owner, name, original)
            _patched.clear()


def _imported(module: ModuleType) -> None:
    with _lock:
        if _keepers:
            _MODULES[module.__name__](module)


def _patch_sdk(module: ModuleType) -> None:
    for base, gate in ((module.SyncAPIClient, _gate), (module.AsyncAPIClient, _async_gate)):
        for client in _family(base):
            if "request" in vars(client):
                _wrap(client, "request", gate(_is_sdk_model_request))


def _patch_http(module: ModuleType) -> None:
    _wrap(module.Client, "send", _gate(_is_http_model_request))
    _wrap(module.AsyncClient, "send", _async_gate(_is_http_model_request))


_MODULES: dict[str, Callable[[ModuleType], None]] = {
    "openai._base_client": _patch_sdk,
    "anthropic._base_client": _patch_sdk,
    "httpx": _patch_http,
    "httpx2": _patch_http,
}


def _wrap(owner: type, name: str, wrapper: Wrapped) -> None:
    original = vars(owner)[name]
    _patched.append((owner, name, original))
    setattr(owner, name, wrapt.FunctionWrapper(original, wrapper))


def _family(base: type) -> Iterator[type]:
    """Yield a client class and its subclasses: an instrumentation may have patched those."""
    yield base
    derived: type
    for derived in base.__subclasses__():
        yield from _family(derived)


def _is_sdk_model_request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    options = kwargs.get("options", args[1] if len(args) > 1 else None)
    method, path = str(getattr(options, "method", "")), str(getattr(options, "url", ""))
    return method.upper() == "POST" and _is_model_path(path)


def _is_http_model_request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    request = kwargs.get("request", args[0] if args else None)
    path = str(getattr(getattr(request, "url", None), "path", ""))
    return getattr(request, "method", "") == "POST" and _is_model_path(path)


def _is_model_path(path: str) -> bool:
    return MODEL_PATH.search(path.partition("?")[0]) is not None


def _admit() -> list[Pass]:
    passes = (keeper.admit() for keeper in tuple(_keepers))
    return [allowed for allowed in passes if allowed is not None]


def _gate(is_model_request: RequestTest) -> Wrapped:
    def gated(
        wrapped: Wrapped, _instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        if _asked.get() or not is_model_request(args, kwargs):
            return wrapped(*args, **kwargs)
        passes, token = _admit(), _asked.set(True)
        try:
            return wrapped(*args, **kwargs)
        except BaseException:
            for allowed in passes:
                allowed.fail()
            raise
        finally:
            _asked.reset(token)

    return gated


def _async_gate(is_model_request: RequestTest) -> Wrapped:
    async def ask_first(wrapped: Wrapped, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        passes, token = _admit(), _asked.set(True)
        try:
            return await cast("Awaitable[object]", wrapped(*args, **kwargs))
        except BaseException:
            for allowed in passes:
                allowed.fail()
            raise
        finally:
            _asked.reset(token)

    def gated(
        wrapped: Wrapped, _instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        if _asked.get() or not is_model_request(args, kwargs):
            return wrapped(*args, **kwargs)
        return ask_first(wrapped, args, kwargs)

    return gated
