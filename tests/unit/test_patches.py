"""Wrappers around methods of other packages, whatever else is done to those meanwhile."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import wrapt

from otel_loopguard.abort.patches import Patches, Wrapped


class Client:
    """One of another package, which has two ways to ask."""

    def send(self) -> str:
        return "sent"

    def stream(self) -> str:
        return "streamed"


class Place(NamedTuple):
    owner: type
    name: str


class Keeper:
    """A guard."""


def marked(_place: Place) -> Wrapped:
    def call(
        wrapped: Wrapped, _owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        return f"seen, {wrapped(*args, **kwargs)}"

    return call


def patches(*names: str) -> Patches[Place, Keeper]:
    """Return those of a package of its own, which has a method of each of these names."""

    def places(module: ModuleType) -> Iterator[Place]:
        for name in names or ("send",):
            yield Place(module.Client, name)

    return Patches({"package_of_theirs": places}, marked, "%s is built otherwise")


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("package_of_theirs")
    module.Client = Client
    monkeypatch.setitem(sys.modules, "package_of_theirs", module)


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    before = Client.send, Client.stream
    yield
    Client.send, Client.stream = before  # type: ignore[method-assign]


def through(function: Any) -> Any:
    """Return a wrapper that says what it wraps, of the one make."""

    @wraps(function)
    def call(self: object) -> str:
        return f"theirs, {function(self)}"

    return call


def by_wrapt(function: Any) -> Any:
    """Return one of the other make."""

    def call(wrapped: Wrapped, _owner: object, args: tuple[Any, ...], _kwargs: object) -> str:
        return f"theirs, {wrapped(*args)}"

    return wrapt.FunctionWrapper(function, call)


WRAPPERS = pytest.mark.parametrize("wrapper", [through, by_wrapt])


@WRAPPERS
def test_an_original_of_long_ago_that_is_put_back_is_patched_anew(
    wrapper: Callable[[Any], Any],
) -> None:
    """As an instrumentation does that was there first and is taken off."""
    ours, first, second = patches(), Keeper(), Keeper()
    original = vars(Client)["send"]
    Client.send = wrapper(wrapper(original))  # type: ignore[method-assign]
    ours.keep(first)
    assert Client().send() == "seen, theirs, theirs, sent"
    Client.send = original  # type: ignore[method-assign]
    ours.keep(second)
    assert Client().send() == "seen, sent"

    ours.leave(first)
    ours.leave(second)
    assert vars(Client)["send"] is original


@WRAPPERS
def test_one_that_is_taken_off_and_put_on_again_is_patched_over(
    wrapper: Callable[[Any], Any],
) -> None:
    ours, first, second = patches(), Keeper(), Keeper()
    original = vars(Client)["send"]
    Client.send = wrapper(original)  # type: ignore[method-assign]
    ours.keep(first)
    Client.send = wrapper(original)  # type: ignore[method-assign]
    ours.keep(second)

    assert Client().send() == "seen, theirs, sent"


@WRAPPERS
def test_one_that_leads_to_ours_is_not_patched_over(wrapper: Callable[[Any], Any]) -> None:
    ours, first, second = patches(), Keeper(), Keeper()
    ours.keep(first)
    Client.send = theirs = wrapper(wrapper(Client.send))  # type: ignore[method-assign]
    ours.keep(second)

    assert vars(Client)["send"] is theirs
    assert Client().send() == "theirs, theirs, seen, sent"


def test_wrappers_that_wrap_each_other_are_no_endless_walk() -> None:
    ours, first, second = patches(), Keeper(), Keeper()
    ours.keep(first)
    around: Any = through(Client.send)
    around.__wrapped__ = around
    Client.send = around  # type: ignore[method-assign]
    ours.keep(second)

    assert Client.send is around


def test_a_method_that_is_not_there_leaves_the_others_and_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, first, second = patches("gone", "send", "gone too", "stream"), Keeper(), Keeper()
    ours.keep(first)
    ours.keep(second)

    assert (Client().send(), Client().stream()) == ("seen, sent", "seen, streamed")
    assert [each.getMessage() for each in caplog.records] == [
        "package_of_theirs is built otherwise"
    ]


def test_what_must_not_be_imported_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "package_of_theirs", None)
    ours, keeper = patches(), Keeper()
    ours.keep(keeper)

    assert caplog.records == []
    assert Client().send() == "sent"


def test_a_keeper_is_kept_once_and_not_kept_alive() -> None:
    ours, first, second = patches(), Keeper(), Keeper()
    for keeper in (first, second, first):
        ours.keep(keeper)
    assert [*ours.keepers] == [second, first]
    del first, keeper
    gc.collect()
    assert [*ours.keepers] == [second]
    ours.leave(second)

    assert [*ours.keepers] == []
    assert Client().send() == "sent"


def test_who_comes_and_goes_meanwhile_disturbs_no_call() -> None:
    ours, stays, comes = patches(), Keeper(), Keeper()
    ours.keep(stays)
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            ours.keep(comes)
            ours.leave(comes)

    others = [threading.Thread(target=come_and_go) for _ in range(2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for other in others:
            other.start()
        assert all(stays in ours.keepers for _ in range(100_000))
    finally:
        is_over.set()
        for other in others:
            other.join()
        sys.setswitchinterval(before)
