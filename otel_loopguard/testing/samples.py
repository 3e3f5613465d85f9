"""Sample arguments for a tool: the same valid value for the same JSON Schema, every time.

Only what tool schemas of real frameworks hold is understood: types, `const`, `enum`, `examples`,
`default`, `anyOf`, `oneOf`, `allOf`, references to `$defs`, and which properties are required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

_TEXT = "alpha"
_MAX_DEPTH = 8  # a schema that requires itself has no finite value
_BY_TYPE: Mapping[str, object] = {
    "string": _TEXT,
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "null": None,
}


def sample_arguments(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a value for every required property of the schema, all of them where none is named."""
    return _object(schema, schema, 0)


def _object(
    schema: Mapping[str, object], root: Mapping[str, object], depth: int
) -> dict[str, object]:
    properties = _mapping(schema.get("properties"))
    required = schema.get("required", list(properties))
    names = cast("Sequence[str]", required) if isinstance(required, list) else ()
    return {name: _value(_mapping(properties.get(name)), root, depth + 1) for name in names}


def _value(schema: Mapping[str, object], root: Mapping[str, object], depth: int) -> object:
    if depth > _MAX_DEPTH:
        return None
    stated = [schema[keyword] for keyword in ("const", "default") if keyword in schema]
    if stated := [*stated, *_items(schema.get("examples")), *_items(schema.get("enum"))]:
        return stated[0]
    if (reference := schema.get("$ref")) is not None:
        return _value(_definition(str(reference), root), root, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if options := _items(schema.get(keyword)):
            return _value(_mapping(options[0]), root, depth + 1)
    kind = schema.get("type")
    name = next(iter(_items(kind)), kind)  # one type, or a list of types
    if name == "object" or "properties" in schema:
        return _object(schema, root, depth)
    return _BY_TYPE.get(str(name), _TEXT)


def _definition(reference: str, root: Mapping[str, object]) -> Mapping[str, object]:
    place = root
    for part in filter(None, reference.removeprefix("#").split("/")):
        place = _mapping(place.get(part))
    return place


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()
