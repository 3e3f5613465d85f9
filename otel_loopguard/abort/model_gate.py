"""The model gate: a model request of a refused run does not leave.

It stands where model requests pass whatever the framework: at the `request` method of the `openai`
and `anthropic` clients, above their retries, so that the caller gets the exception as it is; and at
`send` of `httpx` and `httpx2` for everything else. Only requests that look like model requests are
asked about; everything else passes unseen. Modules are patched when they are imported, and put back
as they were when the last guard leaves.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast
from weakref import WeakSet

import wrapt

from otel_loopguard.forks import renew_in_children

MODEL_PATH = re.compile(
    r"/completions$"
    r"|/(v\d+\w*|openai)/(responses|messages)$"
    r"|:(stream)?generateContent$"
    r"|/api/(chat|generate)$"
    r"|/model/[^/]+/(converse|invoke)(-stream|-with-response-stream)?$",
    re.IGNORECASE,
)
"""Paths of model requests: OpenAI and its many likes, Anthropic, Gemini, Ollama, Bedrock.

Tools post to paths that look alike, such as the messages of a chat's channel: those of Anthropic
are told by their header, those of Ollama by its port.
"""

_OLLAMA_PATH = re.compile(r"/api/(chat|generate)$", re.IGNORECASE)
_OLLAMA_PORT = 11434

_SDK_PATH = re.compile(r"^/?(responses|v1/messages)$")
"""What the clients of `openai` and `anthropic` call them besides, below their base address."""


class Pass(Protocol):
    """A request that was let through."""

    def over(self, *, failed: bool) -> None:
        """Hear that the request came back, with an answer or without."""
        ...


class Gatekeeper(Protocol):
    """Says whether a model request may leave."""

    def admit(self) -> Pass | None:
        """Let the request of the calling code through, or raise `RunAborted`."""
        ...


Wrapped = Callable[..., Any]
RequestTest = Callable[[tuple[Any, ...], dict[str, Any]], bool]


class _Patch(NamedTuple):
    owner: type
    name: str
    original: object
    wrapper: object

    @property
    def is_outermost(self) -> bool:
        """Whether nobody has patched over it since."""
        return vars(self.owner).get(self.name) is self.wrapper


_FAILED = 400
"""HTTP statuses from here on are failures."""

_logger = logging.getLogger(__name__)
_keepers: WeakSet[Gatekeeper] = WeakSet()
_patches: list[_Patch] = []
_hooked: set[str] = set()
_lock = threading.RLock()
_asked: ContextVar[object] = ContextVar("loopguard_asked", default=None)
"""Who has asked already, in a layer above: an SDK above its HTTP client, a subclass above its base.
A task or thread that is started meanwhile inherits the mark, and is not the one."""

renew_in_children(sys.modules[__name__], "_lock")


def guard_requests(keeper: Gatekeeper) -> None:
    """Ask this keeper about every model request from now on."""
    with _lock:
        _keepers.add(keeper)
        for name in _MODULES:
            if name in sys.modules:
                _imported(sys.modules[name])
            elif name not in _hooked:
                _hooked.add(name)
                wrapt.register_post_import_hook(_imported, name)


def leave_requests(keeper: Gatekeeper) -> None:
    """Ask this keeper no more; with the last one gone, put every module back as it was.

    What somebody else has patched since stays, and lets every request pass.
    """
    with _lock:
        _keepers.discard(keeper)
        if not _keepers:
            for patch in [patch for patch in reversed(_patches) if patch.is_outermost]:
                setattr(patch.owner, patch.name, patch.original)
                _patches.remove(patch)


def _imported(module: ModuleType) -> None:
    with _lock:
        if not _keepers:
            return
        try:
            _MODULES[module.__name__](module)
        except Exception:
            # A version that is built otherwise must still be importable.
            _logger.exception("model requests of %s cannot be refused", module.__name__)


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
    if any(patch.owner is owner and patch.name == name for patch in _patches):
        return
    original = vars(owner)[name]
    patched = wrapt.FunctionWrapper(original, wrapper)
    _patches.append(_Patch(owner, name, original, patched))
    setattr(owner, name, patched)


def _family(base: type) -> Iterator[type]:
    """Yield a client class and its subclasses: an instrumentation may have patched those."""
    yield base
    derived: type
    for derived in base.__subclasses__():
        yield from _family(derived)


def _is_sdk_model_request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    options = kwargs.get("options", args[1] if len(args) > 1 else None)
    method, path = str(getattr(options, "method", "")), str(getattr(options, "url", ""))
    if method.upper() != "POST":
        return False
    return _is_model_path(path) or _SDK_PATH.search(path.partition("?")[0]) is not None


def _is_http_model_request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    request = kwargs.get("request", args[0] if args else None)
    url = getattr(request, "url", None)
    path = str(getattr(url, "path", ""))
    if getattr(request, "method", "") != "POST" or not _is_model_path(path):
        return False
    if path.endswith("/messages"):
        return "anthropic-version" in getattr(request, "headers", ())
    return _OLLAMA_PATH.search(path) is None or getattr(url, "port", None) == _OLLAMA_PORT


def _is_model_path(path: str) -> bool:
    return MODEL_PATH.search(path.partition("?")[0]) is not None


@contextmanager
def _admitted() -> Generator[Callable[[object], None]]:
    """Ask every keeper, let the request be made, and tell what became of it.

    Yields what is to be called with the answer.
    """
    passes: list[Pass] = []
    failed = True

    def answered(answer: object) -> None:
        nonlocal failed
        status = getattr(answer, "status_code", None)
        failed = isinstance(status, int) and status >= _FAILED

    try:
        for keeper in tuple(_keepers):
            allowed = keeper.admit()
            if allowed is not None:
                passes.append(allowed)
        token = _asked.set(_caller())
        try:
            yield answered
        finally:
            with suppress(ValueError):  # a coroutine may be closed in another context
                _asked.reset(token)
    finally:
        for allowed in reversed(passes):
            allowed.over(failed=failed)


def _caller() -> object:
    try:
        return asyncio.current_task() or threading.get_ident()
    except RuntimeError:
        return threading.get_ident()


def _gate(is_model_request: RequestTest) -> Wrapped:
    def gated(
        wrapped: Wrapped, _instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        if _asked.get() == _caller() or not is_model_request(args, kwargs):
            return wrapped(*args, **kwargs)
        with _admitted() as answered:
            answer = wrapped(*args, **kwargs)
            answered(answer)
            return answer

    return gated


def _async_gate(is_model_request: RequestTest) -> Wrapped:
    async def ask_first(wrapped: Wrapped, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        with _admitted() as answered:
            answer = await cast("Awaitable[object]", wrapped(*args, **kwargs))
            answered(answer)
            return answer

    def gated(
        wrapped: Wrapped, _instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        if _asked.get() == _caller() or not is_model_request(args, kwargs):
            return wrapped(*args, **kwargs)
        return ask_first(wrapped, args, kwargs)

    return gated
