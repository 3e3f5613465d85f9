"""The canonical text of any Python value, written without recursion.

For JSON-like data it is what the encoder writes, with strings in NFC and integers in full. What
JSON has no form for is written so that it equals nothing in JSON: `@"type"` and the content,
`^n` for the container that is open n levels from the outside, `NaN`, keys that are no strings.

Sequences are arrays and mappings are objects whatever their class; `Decimal`, `Fraction` and other
real numbers are numbers; an instance of a subclass of `str`, `int`, `float`, `bytes`, `dict`,
`list`, `tuple` or `set` is what it extends. `_contents` reads all else.
"""

from __future__ import annotations

from collections import UserString
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from decimal import Decimal
from functools import lru_cache
from numbers import Rational, Real
from operator import itemgetter
from typing import Any, Final
from unicodedata import normalize

from otel_loopguard.values._contents import contents
from otel_loopguard.values._scalars import SCALARS, string

PARTS: Final = 100_000
"""How many parts (items, members, keys) a value may have; what has more is unreadable."""

_USED_UP: Final = ("__next__", "__anext__", "__await__")


class UnreadableError(Exception):
    """A value that cannot be read by value, or has too many parts."""


def normal_form(value: object, unknown: object) -> bytes:
    """Return the canonical text of a value.

    Raises `UnreadableError` where the value holds `unknown`, something that reading would use up
    (an iterator, a file, an awaitable), or too many parts, and whatever foreign code raises.
    """
    return _Writer(unknown).text(value)


class _Writer:
    """Writes one value; holds which containers are open and how much more it may write."""

    def __init__(self, unknown: object) -> None:
        self._unknown = unknown
        self._left = PARTS
        self._depths: dict[int, int] = {}

    def text(self, root: object) -> bytes:
        """Return the text of a part of the value; what is open around it counts as open."""
        out: list[bytes] = []
        opened: list[object] = []  # keeps objects made on the way alive, so that their ids are
        frames = [iter((root,))]
        while frames:
            for part in frames[-1]:
                self._spend(part)
                write = SCALARS.get(type(part))
                if write is not None:
                    out.append(write(part))
                elif id(part) in self._depths:
                    out.append(b"^%d" % self._depths[id(part)])
                else:
                    self._depths[id(part)] = len(self._depths)
                    opened.append(part)
                    frames.append(self._parts(part, out))
                    break
            else:
                frames.pop()
                if opened:
                    del self._depths[id(opened.pop())]
        return b"".join(out)

    def _spend(self, part: object) -> None:
        """Count a part; a long integer counts more: writing it takes the square of its length."""
        self._left -= 1 + (part.bit_length() >> 10) ** 2 if type(part) is int else 1
        if self._left < 0:
            raise UnreadableError

    def _parts(self, value: object, out: list[bytes]) -> Iterator[object]:
        """Return the parts of an object; the marks around and between them go to `out`."""
        if value is self._unknown:
            raise UnreadableError
        kind: Any = type(value)
        way, read = _way_of(kind)
        if way == "scalar":
            return iter((read(value),))
        if way == "array":
            return _array(read(value), out)
        if way == "object":
            return self._object(read(value), out)
        if way == "set":
            out.append(b'@"set"[%b]' % b",".join(sorted(map(self.text, read(value)))))
            return iter(())
        name, content = read(value)
        out.append(b"@%b" % string(name))
        return iter((content,))

    def _object(
        self, members: Iterable[tuple[object, object]], out: list[bytes]
    ) -> Iterator[object]:
        entries = [(*self._key(key), member) for key, member in members]
        if len({text for _, text, _ in entries}) < len(entries):  # keys that NFC made equal
            texts = sorted(b"%b:%b" % (text, self.text(member)) for _, text, member in entries)
            out.append(b"{%b}" % b",".join(texts))
            return
        entries.sort(key=itemgetter(0))
        mark = b"{"
        for _, text, member in entries:
            out.append(b"%b%b:" % (mark, text))
            mark = b","
            yield member
        out.append(b"}" if entries else b"{}")

    def _key(self, key: Any) -> tuple[tuple[bool, bytes], bytes]:
        """Return what a key is sorted by and its text. Strings come first, as the encoder sorts."""
        if issubclass(type(key), str):
            self._spend(key)
            name = normalize("NFC", str.__str__(key))
            return (False, name.encode(errors="surrogatepass")), string(name)
        text = self.text(key)
        return (True, text), text


def _array(items: Iterable[object], out: list[bytes]) -> Iterator[object]:
    mark = b"["
    for item in items:
        out.append(mark)
        mark = b","
        yield item
    out.append(b"]" if mark == b"," else b"[]")


def _refuse(value: object) -> object:
    raise UnreadableError(type(value))


_WAYS: Final[dict[str, dict[type, Callable[[Any], Any]]]] = {
    "scalar": {
        str: vars(str)["__str__"],
        int: int.__index__,
        float: float.__float__,
        Decimal: Decimal,
        bytes: memoryview,
        bytearray: memoryview,
        UserString: lambda value: value.data,
        Rational: lambda value: int(value) if value.denominator == 1 else float(value),
        Real: float,
    },
    "array": {
        list: vars(list)["__iter__"],
        tuple: vars(tuple)["__iter__"],
        Sequence: iter,
        ValuesView: iter,
    },
    "set": {
        set: vars(set)["__iter__"],
        frozenset: vars(frozenset)["__iter__"],
        AbstractSet: iter,
    },
    "object": {
        dict: vars(dict)["items"],
        Mapping: lambda mapping: ((key, mapping[key]) for key in mapping),
    },
}
"""How instances of classes and of their subclasses are written, and read: built-in classes without
any method that a subclass may have changed. The first that fits counts."""


@lru_cache(maxsize=512)
def _way_of(kind: type) -> tuple[str, Callable[[Any], Any]]:
    if any(hasattr(kind, method) for method in _USED_UP):
        return "other", _refuse
    for way, readers in _WAYS.items():
        for base, read in readers.items():
            if issubclass(kind, base):
                return way, read
    return "other", contents
