"""The model gate: a model request of a refused run does not leave.

It stands at the clients of `model_clients`, above their retries where they have any, so that the
caller gets the exception as it is. Only requests that look like model requests are asked about;
everything else passes unseen. Modules are patched when they are imported, and put back as they were
when the last guard leaves.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, cast

from otel_loopguard.abort.model_clients import CLIENTS, Call, Place
from otel_loopguard.abort.patches import Patches, Wrapped
from otel_loopguard.told import Told, told_by


class Pass(Protocol):
    """A request that was let through."""

    def over(self, *, failed: bool) -> None:
        """Hear that the request came back, with an answer or without."""
        ...


class Gatekeeper(Protocol):
    """Says whether a model request may leave."""

    def admit(self, read: Callable[[], Told | None]) -> Pass | None:
        """Let the request of the calling code through, or raise `RunAborted`.

        `read` returns what the request tells its model, as far as that can be seen.
        """
        ...


_FAILED = 400
"""HTTP statuses from here on are failures."""

_logger = logging.getLogger(__name__)
_unreadable: set[str] = set()
_asked: ContextVar[object] = ContextVar("loopguard_asked", default=None)
"""Who has asked already, in a layer above: an SDK above its HTTP client, a subclass above its base.
A task or thread that is started meanwhile inherits the mark, and is not the one."""


def guard_requests(keeper: Gatekeeper) -> None:
    """Ask this keeper about every model request from now on."""
    _patches.keep(keeper)


def leave_requests(keeper: Gatekeeper) -> None:
    """Ask this keeper no more; with the last one gone, put every module back as it was."""
    _patches.leave(keeper)


def _is_to_be_asked(place: Place, call: Call) -> bool:
    asker = _asked.get()
    if asker is not None and asker == _caller():
        return False
    try:
        return place.is_model_request(call)
    except ValueError:  # no address: its client says so
        return False
    except Exception:
        where = f"{place.owner.__module__}.{place.owner.__qualname__}.{place.name}"
        if where not in _unreadable:
            _unreadable.add(where)
            _logger.exception("model requests cannot be told from others at %s", where)
        return False


def _told(place: Place, call: Call) -> Told | None:
    try:
        return told_by(place.body(call))
    except Exception:  # noqa: BLE001 -- a body that can be read only once is left to the request
        return None


@contextmanager
def _admitted(place: Place, call: Call) -> Generator[Callable[[object], None]]:
    """Ask every keeper, let the request be made, and tell what became of it.

    Yields what is to be called with the answer.
    """
    passes: list[Pass] = []
    failed = True

    def answered(answer: object) -> None:
        nonlocal failed
        status = getattr(answer, place.status, None)
        failed = isinstance(status, int) and status >= _FAILED

    try:
        for keeper in _patches.keepers:
            allowed = keeper.admit(partial(_told, place, call))
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


def _gate(place: Place) -> Wrapped:
    def gated(
        wrapped: Wrapped, client: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        call = Call(client, args, kwargs)
        if not _is_to_be_asked(place, call):
            return wrapped(*args, **kwargs)
        with _admitted(place, call) as answered:
            answer = wrapped(*args, **kwargs)
            answered(answer)
            return answer

    return gated


def _async_gate(place: Place) -> Wrapped:
    async def ask_first(wrapped: Wrapped, call: Call) -> object:
        with _admitted(place, call) as answered:
            answer = await cast("Awaitable[object]", wrapped(*call.args, **call.kwargs))
            answered(answer)
            return answer

    def gated(
        wrapped: Wrapped, client: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        call = Call(client, args, kwargs)
        if not _is_to_be_asked(place, call):
            return wrapped(*args, **kwargs)
        return ask_first(wrapped, call)

    return gated


_patches: Patches[Place, Gatekeeper] = Patches(
    CLIENTS,
    lambda place: (_async_gate if place.is_async else _gate)(place),
    "model requests of %s cannot be refused",
)
