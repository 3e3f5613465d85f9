"""What a JSON Schema refuses, by as much of draft 2020-12 as the project's own one uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tests._tables import is_list, is_table

Schema: TypeAlias = Mapping[str, Any]

ANNOTATIONS = {"$schema", "$defs", "title", "description", "default", "format", "properties"}


def accepts(value: Any, schema: Schema, root: Schema | None = None) -> bool:
    """Say whether a value is what a schema describes; a keyword that is not known here raises."""
    whole = schema if root is None else root
    return all(
        _KEYWORDS[keyword](value, schema, whole) for keyword in schema if keyword not in ANNOTATIONS
    ) and all(
        accepts(value[name], of, whole)
        for name, of in schema.get("properties", {}).items()
        if is_table(value) and name in value
    )


def _type(value: Any, schema: Schema, _root: Schema) -> bool:
    if isinstance(value, bool):
        return schema["type"] == "boolean"
    kinds: Mapping[str, Any] = {
        "object": dict,
        "array": (list, tuple),
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": (),
    }
    whole = schema["type"] == "integer" and isinstance(value, float) and value.is_integer()
    return whole or isinstance(value, kinds[schema["type"]])


def _one_of(value: Any, choices: Iterable[Any]) -> bool:
    return any(
        value == each and isinstance(value, bool) == isinstance(each, bool) for each in choices
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _others(value: Any, schema: Schema, root: Schema) -> bool:
    if not is_table(value):
        return True
    others = [value[name] for name in value if name not in schema.get("properties", {})]
    allowed = schema["additionalProperties"]
    return not others if allowed is False else all(accepts(each, allowed, root) for each in others)


_KEYWORDS: Mapping[str, Callable[[Any, Schema, Schema], bool]] = {
    "$ref": lambda v, s, r: accepts(v, r["$defs"][s["$ref"].removeprefix("#/$defs/")], r),
    "type": _type,
    "const": lambda v, s, _: _one_of(v, [s["const"]]),
    "enum": lambda v, s, _: _one_of(v, s["enum"]),
    "anyOf": lambda v, s, r: any(accepts(v, each, r) for each in s["anyOf"]),
    "minimum": lambda v, s, _: not _is_number(v) or not v < s["minimum"],
    "maximum": lambda v, s, _: not _is_number(v) or not v > s["maximum"],
    "minLength": lambda v, s, _: not isinstance(v, str) or len(v) >= s["minLength"],
    "pattern": lambda v, s, _: not isinstance(v, str) or bool(re.search(s["pattern"], v)),
    "items": lambda v, s, r: not is_list(v) or all(accepts(each, s["items"], r) for each in v),
    "required": lambda v, s, _: not is_table(v) or {*s["required"]} <= {*v},
    "additionalProperties": _others,
}
