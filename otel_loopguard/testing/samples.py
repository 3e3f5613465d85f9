"""Sample arguments for a tool: the same valid value for the same JSON Schema, every time.

Only what tool schemas of real frameworks hold is understood: types, `const`, `enum`, `examples`,
`default`, `anyOf`, `oneOf`, references to `$defs`, bounds, the usual formats, and which properties
are required. Of `allOf` only the first is; `pattern`, `multipleOf`, `uniqueItems`, `prefixItems`,
`contains`, `not`, `minProperties` and conditions are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from math import ceil, floor
from typing import cast

import msgspec

_MAX_DEPTH = 8  # a schema that requires itself has no finite value
_FIRST_DAY = date(2026, 1, 1).toordinal()
_DAYS = 365_000
_FEW = 1_000
_MOST = 10_000
"""So long may a text or a list have to be."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Which of all valid values is meant."""

    word: str = "alpha"
    """Stands for any text."""
    number: int = 1
    """Stands for any number, and picks among what can be counted."""


PLAIN = Sample()
"""The one that a schema itself proposes, where it does."""
MISSING = Sample(word="does-not-exist", number=404_404)
"""Valid, and most likely the name of nothing."""


def variation(number: int) -> Sample:
    """Return the sample of this number, from 0: each differs from the others where values can."""
    return Sample(word=f"alpha {number}", number=number + 1) if number else PLAIN


def sample_arguments(schema: Mapping[str, object], sample: Sample = PLAIN) -> dict[str, object]:
    """Return a value for every required property of the schema, all of them where none is named."""
    return _Reading(schema, sample).object_of(schema, 0)


class _Reading:
    """One reading of one schema, with what stands for each type."""

    def __init__(self, root: Mapping[str, object], sample: Sample) -> None:
        self._root = root
        self._sample = sample
        self._number = sample.number

    def object_of(self, schema: Mapping[str, object], depth: int) -> dict[str, object]:
        properties = _mapping(schema.get("properties"))
        required = schema.get("required", list(properties))
        if self._sample != PLAIN and not required:
            required = list(properties)  # or nothing could differ
        names = cast("Sequence[str]", required) if isinstance(required, list) else ()
        return {name: self.value_of(_mapping(properties.get(name)), depth + 1) for name in names}

    def value_of(self, schema: Mapping[str, object], depth: int) -> object:
        if depth > _MAX_DEPTH:
            return None
        if stated := self._stated(schema):
            return stated[(self._number - 1) % len(stated)]
        if (meant := self._meant(schema)) is not None:
            return self.value_of(meant, depth + 1)
        kind = schema.get("type")
        name = next(iter(_items(kind)), kind)  # one type, or a list of types
        if name == "object" or "properties" in schema:
            return self.object_of(schema, depth)
        if name == "array":
            return self._array(schema, depth)
        return self._scalar(str(name), schema)

    def _meant(self, schema: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return the schema that this one leaves the matter to."""
        if (reference := schema.get("$ref")) is not None:
            return _definition(str(reference), self._root)
        options = (_items(schema.get(keyword)) for keyword in ("anyOf", "oneOf", "allOf"))
        return next((_mapping(each[0]) for each in options if each), None)

    def _stated(self, schema: Mapping[str, object]) -> Sequence[object]:
        """Return the values that the schema itself names, those to choose from."""
        if "const" in schema:
            return [schema["const"]]
        options = _items(schema.get("enum"))
        if self._sample != PLAIN:
            return options
        proposed = [schema["default"]] if "default" in schema else _items(schema.get("examples"))
        return [*proposed, *options]

    def _array(self, schema: Mapping[str, object], depth: int) -> list[object]:
        fewest = _length(schema, "minItems", 0 if self._sample == PLAIN else 1)
        return [self.value_of(_mapping(schema.get("items")), depth + 1)] * fewest

    def _scalar(self, kind: str, schema: Mapping[str, object]) -> object:
        if kind in ("integer", "number"):
            return self._bounded(schema, is_whole=kind == "integer")
        if kind == "boolean":
            return bool(self._number % 2)
        return None if kind == "null" else self._text(schema)

    def _bounded(self, schema: Mapping[str, object], *, is_whole: bool) -> float:
        """Return a whole number wherever one is within the bounds."""
        number = self._number
        lowest = max(_lowest(schema), default=None)
        highest = min(_highest(schema), default=None)
        if lowest is None and highest is not None:
            lowest = min(1, highest - _FEW)
        if lowest is None or (number >= lowest and (highest is None or number <= highest)):
            return number
        if highest is None:
            return lowest + number - 1
        if highest < lowest and not is_whole:
            return _between(schema, number)
        return lowest + (number - 1) % max(1, highest - lowest + 1)

    def _text(self, schema: Mapping[str, object]) -> str:
        number = self._number
        formats = {
            "date": date.fromordinal(_FIRST_DAY + (number - 1) % _DAYS).isoformat(),
            "email": f"alpha{number}@example.com",
            "time": "12:00:00Z",
            "uri": f"https://example.com/{number}",
            "uuid": f"00000000-0000-4000-8000-{number:012x}",
        }
        formats["date-time"] = f"{formats['date']}T{formats['time']}"
        if (formatted := formats.get(str(schema.get("format")))) is not None:
            return formatted
        word = self._sample.word
        longest = _length(schema, "maxLength", len(word), most=None)
        # Cut at the front: what differs stands at the end.
        return word[max(0, len(word) - longest) :].rjust(_length(schema, "minLength", 0), "a")


def _definition(reference: str, root: Mapping[str, object]) -> Mapping[str, object]:
    place = root
    for part in filter(None, reference.removeprefix("#").split("/")):
        place = _mapping(place.get(part))
    return place


def _lowest(schema: Mapping[str, object]) -> Iterator[int]:
    """Yield the least whole number that each lower bound allows."""
    yield from (ceil(bound) for bound in _numbers(schema, "minimum"))
    yield from (floor(bound) + 1 for bound in _numbers(schema, "exclusiveMinimum"))


def _highest(schema: Mapping[str, object]) -> Iterator[int]:
    """Yield the greatest whole number that each upper bound allows."""
    yield from (floor(bound) for bound in _numbers(schema, "maximum"))
    yield from (ceil(bound) - 1 for bound in _numbers(schema, "exclusiveMaximum"))


def _between(schema: Mapping[str, object], number: int) -> float:
    """Return a number between bounds that no whole number is between, another for each number."""
    lowest = max(_numbers(schema, "minimum", "exclusiveMinimum"))
    highest = min(_numbers(schema, "maximum", "exclusiveMaximum"))
    return lowest + (highest - lowest) / (number + 1)


def _numbers(schema: Mapping[str, object], *keywords: str) -> Iterator[float]:
    for value in map(schema.get, keywords):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value


def _length(
    schema: Mapping[str, object], keyword: str, otherwise: int, most: int | None = _MOST
) -> int:
    length = next((int(each) for each in _numbers(schema, keyword)), otherwise)
    if most is not None and length > most:
        raise ValueError(
            f"{keyword}: {length:,} is more than the {most:,} that arguments are made up for"
        )
    return length


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()
