"""Judges a value by a JSON Schema: by as much of draft 2020-12 as tools' arguments are written in.

What a schema may say at all is looked at before, when the tool is made: in `unjudged`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.options.errors import joined

Schema: TypeAlias = "Mapping[str, Any] | bool"

_LOCAL = re.compile(r"#/(\$defs|definitions)/([^/]+)")


def problem_in(value: object, schema: Schema, path: str, root: Schema | None = None) -> str | None:
    """Return what is wrong with a value, as a text for the model; `None` if nothing is."""
    whole = schema if root is None else root
    if isinstance(schema, bool):
        return None if schema else f"{path}: nothing is allowed here"
    found = (KEYWORDS[name](value, schema, path, whole) for name in schema if name in KEYWORDS)
    return next((problem for problem in found if problem is not None), None)


def referred(reference: object, root: Mapping[str, Any]) -> Schema | None:
    """Return the schema that a reference means; `None` if there is none."""
    match = _LOCAL.fullmatch(reference) if isinstance(reference, str) else None
    if match is None:
        return None
    own = root.get(match[1])
    return cast("Mapping[str, Any]", own).get(match[2]) if isinstance(own, Mapping) else None


def is_number(value: object) -> bool:
    """Whether a value is a number, as JSON has them."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _table_of(value: object) -> dict[str, Any]:
    """Return an object; an empty one for what is none, of which these keywords say nothing."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list_of(value: object) -> list[Any]:
    """Return an array; an empty one for what is none."""
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and value == value // 1,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _type(value: Any, schema: Any, path: str, _: Schema) -> str | None:
    named = schema["type"]
    names = [named] if isinstance(named, str) else named
    fits = any(TYPES[name](value) for name in names)
    return None if fits else f"{path}: expected {' or '.join(names)}, got {value!r}"


def _one_of(value: Any, choices: Iterable[Any], path: str) -> str | None:
    # In a list, a text that is JSON stays a text.
    given = canonical([value])
    listed = [*choices]
    if given is not UNKNOWN and given in [canonical([each]) for each in listed]:
        return None
    return f"{path}: expected {' or '.join(map(repr, listed))}, got {value!r}"


def _properties(value: Any, schema: Any, path: str, root: Schema) -> str | None:
    own, table = schema["properties"], _table_of(value)
    found = (problem_in(table[k], own[k], joined(path, k), root) for k in own if k in table)
    return next((problem for problem in found if problem is not None), None)


def _required(value: Any, schema: Any, path: str, _: Schema) -> str | None:
    table = _table_of(value)
    missing = [repr(key) for key in schema["required"] if key not in table]
    is_object = TYPES["object"](value)
    return f"{path}: {', '.join(missing)} missing" if is_object and missing else None


def _others(value: Any, schema: Any, path: str, root: Schema) -> str | None:
    table = _table_of(value)
    own, allowed = schema.get("properties", {}), schema["additionalProperties"]
    others = [key for key in table if key not in own]
    if allowed is False and others:
        return f"{path}: there is no {', '.join(map(repr, others))}; expected {', '.join(own)}"
    found = (problem_in(table[key], allowed, joined(path, key), root) for key in others)
    return next((problem for problem in found if problem is not None), None)


def _items(value: Any, schema: Any, path: str, root: Schema) -> str | None:
    each = enumerate(_list_of(value))
    found = (problem_in(item, schema["items"], f"{path}[{i}]", root) for i, item in each)
    return next((problem for problem in found if problem is not None), None)


def _all_of(value: Any, schema: Any, path: str, root: Schema) -> str | None:
    found = (problem_in(value, each, path, root) for each in schema["allOf"])
    return next((problem for problem in found if problem is not None), None)


def _fitting(name: str) -> _Judge:
    def judge(value: Any, schema: Any, path: str, root: Schema) -> str | None:
        found = [problem_in(value, each, path, root) for each in schema[name]]
        fits = found.count(None)
        if fits == 1 or (fits and name == "anyOf"):
            return None
        problems = "; or ".join(problem for problem in found if problem is not None)
        return problems if not fits else f"{path}: fits {fits} of the forms that it may have"

    return judge


def _ref(value: Any, schema: Any, path: str, root: Schema) -> str | None:
    # There is one: that was looked at when the tool was made.
    meant = referred(schema["$ref"], cast("Mapping[str, Any]", root))
    return problem_in(value, cast("Schema", meant), path, root)


def _bound(name: str, applies: Callable[[Any], bool], holds: Callable[[Any, Any], bool]) -> _Judge:
    def judge(value: Any, schema: Any, path: str, _: Schema) -> str | None:
        fits = not applies(value) or holds(value, schema[name])
        return None if fits else f"{path}: expected {name} {schema[name]!r}, got {value!r}"

    return judge


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _matches(value: str, pattern: str) -> bool:
    return re.search(pattern, value) is not None


def _is_list(value: object) -> bool:
    return isinstance(value, list)


_Judge: TypeAlias = Callable[[Any, Any, str, Schema], "str | None"]

KEYWORDS: Mapping[str, _Judge] = {
    "type": _type,
    "enum": lambda value, schema, path, _: _one_of(value, schema["enum"], path),
    "const": lambda value, schema, path, _: _one_of(value, [schema["const"]], path),
    "required": _required,
    "properties": _properties,
    "additionalProperties": _others,
    "items": _items,
    "allOf": _all_of,
    "anyOf": _fitting("anyOf"),
    "oneOf": _fitting("oneOf"),
    "$ref": _ref,
    "minimum": _bound("minimum", is_number, lambda value, bound: value >= bound),
    "maximum": _bound("maximum", is_number, lambda value, bound: value <= bound),
    "exclusiveMinimum": _bound("exclusiveMinimum", is_number, lambda value, bound: value > bound),
    "exclusiveMaximum": _bound("exclusiveMaximum", is_number, lambda value, bound: value < bound),
    "minLength": _bound("minLength", _is_text, lambda value, bound: len(value) >= bound),
    "maxLength": _bound("maxLength", _is_text, lambda value, bound: len(value) <= bound),
    "pattern": _bound("pattern", _is_text, _matches),
    "minItems": _bound("minItems", _is_list, lambda value, bound: len(value) >= bound),
    "maxItems": _bound("maxItems", _is_list, lambda value, bound: len(value) <= bound),
}
