"""What a Python object holds that has no JSON form, read without asking the object to compare.

A class that says how it is pickled is read that way (numpy arrays, exceptions, dates), any other by
its `__dict__` and slots (dataclasses, pydantic models, attrs classes), and an object that shows
nothing so by its `repr`, where its class defines one. What only an address tells from its like
cannot be read. Properties, `__getattr__`, `__eq__` and `__hash__` never run. Types of the standard
library are known by name, so that none has to be imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any, Final, cast

_ADDRESS: Final = re.compile(r"\b0x[0-9A-Fa-f]+")
_NO_STATE: Final = frozenset(
    {"__dict__", "__weakref__", "__pydantic_fields_set__", "__fields_set__"}
)
"""Slots that are not part of the value; pydantic's hold which fields the caller named."""


class UnreadableError(Exception):
    """An object that only its address tells from others of its type."""


def contents(value: object) -> tuple[str, object]:
    """Return the name of an object's type, and what the object holds.

    Raises whatever the object's own code raises.
    """
    kind: Any = type(value)
    name, read = _reader_of(kind)
    return name, read(value)


@lru_cache(maxsize=512)
def _reader_of(kind: Any) -> tuple[str, Callable[[Any], object]]:
    for base in kind.__mro__:
        name = _name(base)
        if name in _READERS:
            return name, _READERS[name]
    return ("path", kind.__fspath__) if hasattr(kind, "__fspath__") else (_name(kind), _shown)


def _shown(value: object) -> object:
    kind = type(value)
    return (
        _pickled(value, kind)
        or _state(value, kind)
        or _stated(value, kind)
        or _own_repr(value, kind)
    )


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _instant(value: Any) -> str:
    """Return the time of a `datetime`: in UTC if it is aware, so that equal instants are equal."""
    offset = value.utcoffset()
    with suppress(OverflowError):  # within a day of the first or the last moment there is
        if offset is not None:
            return f"{(value.replace(tzinfo=None) - offset).isoformat()}Z"
    return str(value.isoformat())


def _member(value: Any) -> tuple[str, object]:
    """Return which member of which `Enum` a value is; unnamed flags go by their bits."""
    name, bits = value.name, value.value
    return _name(value.__class__), bits if name is None else name


_READERS: Final[dict[str, Callable[[Any], object]]] = {
    "builtins.complex": lambda number: (number.real, number.imag),
    "builtins.module": lambda module: module.__name__,
    "builtins.type": _name,
    "datetime.datetime": _instant,
    "enum.Enum": _member,
    "uuid.UUID": str,
}


def _pickled(value: object, kind: Any) -> object:
    """Return the parts that pickle would store, if the class has a say in it and allows it."""
    if kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__:
        return None
    try:
        parts: Iterable[object] = kind.__reduce_ex__(value, 4)  # of a name, its letters
    except Exception:  # noqa: BLE001 - foreign code: this object has no pickled form
        return None
    return [
        list(cast("Iterator[object]", part)) if issubclass(type(part), Iterator) else part
        for part in parts
    ]


def _stated(value: object, kind: Any) -> object:
    """Return what a class says is its state, if it has a say in it."""
    say = getattr(kind, "__getstate__", None)
    return None if say is None or say is getattr(object, "__getstate__", None) else say(value)


def _state(value: object, kind: type) -> dict[str, object]:
    """Return the attributes that are stored in the object itself."""
    slots, derived = _layout(kind)
    stored: dict[str, object] = {}
    with suppress(AttributeError):  # an object that has slots only
        stored = object.__getattribute__(value, "__dict__")
    state = {name: item for name, item in stored.items() if name not in derived}
    for slot in slots:
        with suppress(AttributeError):  # a slot that was never set
            state[slot] = object.__getattribute__(value, slot)
    return state


@lru_cache(maxsize=512)
def _layout(kind: type) -> tuple[frozenset[str], frozenset[str]]:
    """Return the slots of a class, and the attributes that it caches and could compute again."""
    slots: set[str] = set()
    derived: set[str] = set()
    for base in kind.__mro__:
        declared = base.__dict__.get("__slots__", ())
        for name in (declared,) if isinstance(declared, str) else declared:
            private = name.startswith("__") and not name.endswith("__")
            slots.add(f"_{base.__name__.lstrip('_')}{name}" if private else name)
        derived.update(name for name, item in vars(base).items() if type(item) is cached_property)
    return frozenset(slots - _NO_STATE), frozenset(derived)


def _own_repr(value: object, kind: Any) -> str | None:
    """Return what the class itself writes of the object; `None` if it is known to hold nothing.

    Raises:
        UnreadableError: if there is nothing but its address to tell it by.

    """
    if kind.__repr__ is object.__repr__:
        if hasattr(value, "__dict__") or "__slots__" in vars(kind):
            return None
        raise UnreadableError
    shown = kind.__repr__(value)
    if _ADDRESS.search(shown):
        raise UnreadableError
    return cast("str", shown)
