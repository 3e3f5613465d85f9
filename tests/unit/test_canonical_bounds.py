"""What cannot be told, what must not be touched, and that neither raises nor takes for ever."""

from __future__ import annotations

import copy
import io
import json
import math
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN, canonical, fingerprint
from tests.unit._specimens import Empty, Left, Model, nested

MANY = 100_000


class Endless(Sequence[int]):
    def __getitem__(self, _: Any) -> Any:
        return 1

    def __len__(self) -> int:
        return 1


class EndlessMapping(Mapping[int, int]):
    def __getitem__(self, key: int) -> int:
        return key

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        number = 0
        while True:
            yield (number := number + 1)


class EndlessText(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return len(key)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        while True:
            yield "key"


def numbers() -> Iterator[int]:
    yield 1


async def later() -> AsyncIterator[int]:
    yield 1


class Awaitable:
    def __await__(self) -> Iterator[None]:
        return iter(())


def released() -> memoryview:
    view = memoryview(b"a")
    view.release()
    return view


UNREADABLE: dict[str, object] = {
    "unknown": UNKNOWN,
    "told by its address": object(),
    "repr with an address": threading.Lock(),
    "code": lambda: 1,
    "unknown inside": {"a": [1, UNKNOWN]},
    "unknown in an object": Left(UNKNOWN),  # type: ignore[arg-type]
    "iterator": iter([1]),
    "iterator inside": {"a": iter([1])},
    "generator": numbers(),
    "asynchronous generator": later(),
    "map": map(str, [1]),
    "file": io.StringIO("a"),
    "awaitable": Awaitable(),
    "released view": released(),
    "endless sequence": Endless(),
    "endless mapping": EndlessMapping(),
    "endless mapping of text": EndlessText(),
    "too many items": [1] * (MANY + 1),
    "too many items, none plain": [1j] * MANY,
    "too many keys": [{str(n): 1 for n in range(MANY + 1)}],
    "shared lists": nested(60, lambda value: [value, value]),
    "shared dicts": nested(60, lambda value: {"a": value, "b": value}),
    "shared sets": nested(60, lambda value: frozenset([(value, 1), (value, 2)])),
    "shared objects": nested(60, lambda value: [Left(value), Left(value)]),
    "keys that NFC makes equal, shared": nested(60, lambda value: {"é": value, "e\u0301": value}),
    "deep sets": nested(3000, lambda value: frozenset([value])),
    "long integer": 1 << 1_000_000,
    "long integers": [1 << 300_000] * 100,
    "exponent of twenty digits": "1e99999999999999999999",
    "deep text": "[" * (MANY + 1) + "]" * (MANY + 1),
    "many parts of odd text": "[" + "NaN," * MANY + "1]",
    "many long numbers": "[" + "1e300," * MANY + "1]",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_unknown(name: str) -> None:
    assert canonical(UNREADABLE[name]) is UNKNOWN
    assert fingerprint(UNREADABLE[name]) is None


def fail(*_: object) -> Any:
    raise RuntimeError("foreign code")


HOSTILE = [
    "__bool__",
    "__bytes__",
    "__call__",
    "__class__",
    "__complex__",
    "__contains__",
    "__copy__",
    "__dict__",
    "__eq__",
    "__float__",
    "__format__",
    "__fspath__",
    "__getattr__",
    "__getattribute__",
    "__getitem__",
    "__getstate__",
    "__hash__",
    "__index__",
    "__int__",
    "__iter__",
    "__len__",
    "__lt__",
    "__reduce__",
    "__reduce_ex__",
    "__repr__",
    "__sizeof__",
    "__str__",
    "name",
]
UNREADABLE_WITH = {"__dict__", "__fspath__"}
"""Without these, there is no telling what an object is or holds."""


def hostile(name: str, *, value: int) -> object:
    is_property = name in {"__class__", "__dict__", "name"}
    kind = type("Hostile", (), {name: property(fail) if is_property else fail})
    made = kind()
    if name != "__dict__":
        object.__getattribute__(made, "__dict__")["value"] = value
    return made


@pytest.mark.parametrize("name", HOSTILE)
def test_an_object_whose_methods_raise_is_read_by_what_it_holds(name: str) -> None:
    one = canonical(hostile(name, value=1))

    if name in UNREADABLE_WITH:
        assert one is UNKNOWN
    else:
        assert isinstance(one, bytes)
        assert one == canonical(hostile(name, value=1))
        assert one != canonical(hostile(name, value=2))


def test_an_object_that_shows_nothing_and_cannot_be_shown_is_unknown() -> None:
    assert canonical(type("Silent", (), {"__repr__": fail})()) is UNKNOWN


@pytest.mark.parametrize("name", ["__eq__", "__getattribute__", "__hash__", "__iter__"])
def test_a_class_of_a_class_that_raises_does_no_harm(name: str) -> None:
    metaclass: Any = type("Meta", (type,), {"__hash__": type.__hash__, name: fail})
    made = type.__call__(metaclass("Kind", (), {}))

    assert canonical([made]) == canonical([made])


def test_an_interrupt_is_let_through() -> None:
    def interrupt(_: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        canonical(type("Interrupting", (), {"__repr__": interrupt})())


def test_iterators_are_not_consumed() -> None:
    iterator, generator, file = iter([1, 2]), numbers(), io.StringIO("text")

    for value in (iterator, [generator], {"file": file}):
        assert fingerprint(value) is None

    assert list(iterator) == [1, 2]
    assert list(generator) == [1]
    assert file.read() == "text"


def test_the_value_is_left_as_it_was() -> None:
    value = {"b": [1.0, {"e\u0301"}, Model()], "a": {"x": (1, 2)}}
    before = copy.deepcopy(value)

    assert fingerprint(value) is not None
    assert value == before
    assert list(value) == ["b", "a"]


@pytest.mark.parametrize("digits", [0, 640])
def test_the_limit_on_digits_changes_nothing(digits: int) -> None:
    values = [10**700 + 1, 10**1000, [10**5000 - 1, 1.5], f"[{'7' * 700}]", f"[{'7' * 5000}.0]"]
    before = [canonical(value) for value in values]
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(digits)
    try:
        assert [canonical(value) for value in values] == before
    finally:
        sys.set_int_max_str_digits(limit)
    assert UNKNOWN not in before


LARGE: dict[str, Callable[[], Any]] = {
    "text": lambda: "x" * 50_000_000,
    "text that is not ASCII": lambda: "é" * 25_000_000,
    "text that begins like JSON": lambda: "[" + "1," * 10_000_000,
    "number": lambda: "7" * 50_000_000,
    "JSON": lambda: "[" + "1.5," * 1_000_000 + "2]",
    "bytes": lambda: b"x" * 50_000_000,
    "string in a dict": lambda: {"a": "x" * 50_000_000, "b": 1.0},
    "many items": lambda: [1] * (MANY - 1),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_values_are_read_whole(name: str) -> None:
    value = LARGE[name]()

    assert fingerprint(value) is not None
    assert fingerprint(value) == fingerprint(copy.copy(value))
    assert fingerprint(value) != fingerprint(f"y{value}" if isinstance(value, str) else [value, 1])


def test_a_graph_that_is_shared_a_little_is_read_in_full() -> None:
    part = {"a": [1, 2, 3]}

    assert fingerprint([part] * 100) == fingerprint(json.dumps([part] * 100))


def test_an_object_may_be_its_own_class_member() -> None:
    node = Empty()
    node.__dict__["self"] = [node, math.nan]

    assert canonical(node) == canonical(copy.deepcopy(node))
