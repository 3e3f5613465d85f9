"""Values of many classes: what tools are called with and answer, and what should not get there."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import json
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pydantic


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Shade(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):
    YES = "yes"


class Bit(enum.Flag):
    A = 1
    B = 2
    C = 4


class Odd(enum.Enum):
    FUNCTION = (len, object)


class Pair(NamedTuple):
    left: int
    right: int


@dataclasses.dataclass
class Left:
    size: float

    @functools.cached_property
    def doubled(self) -> float:
        return self.size * 2


@dataclasses.dataclass
class Right:
    size: float


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("size",)
    size: int


class Model(pydantic.BaseModel):
    name: str = "x"
    tags: list[str] = []


class Record(msgspec.Struct):
    name: str = "x"
    size: int = 1


class Private:
    __slots__ = ("__hidden", "unset")

    def __init__(self, hidden: int) -> None:
        self.__hidden = hidden

    def __repr__(self) -> str:
        return "Private()"


class OneSlot:
    __slots__ = "only"  # noqa: PLC0205 - a string is allowed, and means one slot

    def __init__(self, only: int) -> None:
        self.only = only


class Empty:
    pass


class Other:
    pass


NAMES: dict[int, str] = {}


class Named:
    """Shows its content by its `repr` only, as an object of a C extension may."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        NAMES[id(self)] = name

    def __repr__(self) -> str:
        return f"<Named {NAMES[id(self)]}>"


class Pickled:
    def __init__(self, parts: object) -> None:
        self.parts = parts
        self.cache = object.__repr__(self)

    def __reduce__(self) -> Any:
        if self.parts == "raise":
            raise TypeError("has no pickled form")
        if isinstance(self.parts, str):
            return self.parts
        return Pickled, (None,), None, iter([self.parts])


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not the text"


class Whole(int):
    def __repr__(self) -> str:
        return "not the number"


class Table(dict[str, object]):
    def __iter__(self) -> Any:
        raise RuntimeError("not to be iterated")


class Row(list[int]):
    def __iter__(self) -> Any:
        raise RuntimeError("not to be iterated")


class Octets(bytes):
    pass


class Mirror(collections.UserDict[str, object]):
    pass


class Half:
    """A real number of a class of its own, as numpy's are."""

    def __float__(self) -> float:
        return 0.5


numbers.Real.register(Half)


def nested(depth: int, wrap: Callable[[Any], object], core: object = 1) -> object:
    value = core
    for _ in range(depth):
        value = wrap(value)
    return value


def circular(last: int = 1) -> object:
    inner: dict[str, object] = {"n": last}
    outer = [1, inner, inner]
    inner["up"] = outer
    return outer


def ring() -> object:
    node = Empty()
    node.__dict__["next"] = node
    return node


def doubly(value: object, times: int) -> str:
    return nested(times, json.dumps, json.dumps(value))  # type: ignore[return-value]
