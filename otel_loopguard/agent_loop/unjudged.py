"""Refuses schemas that arguments cannot be held against, when the tool is made.

A keyword that is not judged is refused: to pass over it would mean to let through what it forbids.
So is one that says what it cannot say: it would fail each call, and the model would be blamed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from otel_loopguard.agent_loop.schema import KEYWORDS, TYPES, is_number, referred
from otel_loopguard.options.errors import joined, wrong

_SAID_ONLY = frozenset(
    (
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    )
)
"""Keywords that describe, and forbid nothing."""
_REMEDY = "leave it out, and look at it in the tool's `check`"
_SCHEMAS = ("$defs", "definitions", "properties")
_FORMS = ("anyOf", "allOf", "oneOf")


def refuse_unjudged(schema: object, path: str, root: Mapping[str, Any] | None = None) -> None:
    """Refuse a schema that asks for more than is judged here, or for what there is not.

    Raises:
        PolicyError: says where, and what to do.

    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise wrong(path, "a JSON Schema: a mapping, true or false", schema)
    table = cast("Mapping[str, Any]", schema)
    whole = table if root is None else root
    for name, said in table.items():
        if name not in KEYWORDS and name not in _SAID_ONLY:
            raise wrong(path, f"keywords that are judged here ({_REMEDY})", name)
        expected, fits = _EXPECTED.get(name, _ANYTHING)
        if not fits(said):
            raise wrong(joined(path, name), expected, said)
        if name == "$ref" and referred(said, whole) is None:
            raise wrong(joined(path, name), "a reference to one of the schema's own $defs", said)
    if "$ref" in table and _is_endless(table, whole):
        raise wrong(path, "a schema that does not come back to itself", table["$ref"])
    for where, inner in _inside(table, path):
        refuse_unjudged(inner, where, whole)


def _inside(table: Mapping[str, Any], path: str) -> Iterator[tuple[str, object]]:
    """Yield the schemas in a schema, and their paths."""
    for name in _SCHEMAS:
        for key, inner in table.get(name, {}).items():
            yield joined(joined(path, name), key), inner
    for name in _FORMS:
        for place, inner in enumerate(table.get(name, ())):
            yield f"{joined(path, name)}[{place}]", inner
    for name in ("items", "additionalProperties"):
        if name in table:
            yield joined(path, name), table[name]


def _is_endless(table: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Whether a value that is held against a schema is held against it again, without an end."""
    ahead, seen = [*_of_the_same_value(table, root)], set[int]()
    while ahead:
        each = ahead.pop()
        if each is table:
            return True
        if id(each) not in seen:
            seen.add(id(each))
            ahead += _of_the_same_value(each, root)
    return False


def _of_the_same_value(schema: object, root: Mapping[str, Any]) -> Iterator[object]:
    """Yield the schemas that a value is held against because it is held against this one."""
    if isinstance(schema, Mapping):
        table = cast("Mapping[str, Any]", schema)
        yield referred(table.get("$ref"), root)
        for name in _FORMS:
            yield from _listed(table.get(name))


def _listed(value: object) -> list[object]:
    """Return what is in an array; nothing for what is none."""
    return [*cast("Iterable[object]", value)] if isinstance(value, (list, tuple)) else []


def _is_texts(value: object) -> bool:
    each_is_one = all(isinstance(each, str) for each in _listed(value))
    return isinstance(value, (list, tuple)) and each_is_one


def _is_type(value: object) -> bool:
    names = [value] if isinstance(value, str) else _listed(value)
    return bool(names) and all(isinstance(each, str) and each in TYPES for each in names)


def _is_table(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(key, str) for key in cast("Mapping[object, object]", value))


def _is_pattern(value: object) -> bool:
    try:
        re.compile(cast("str", value))
    except Exception:  # noqa: BLE001 -- it raises several kinds, by what is wrong
        return False
    return isinstance(value, str)


def _is_bound(value: object) -> bool:
    return is_number(value) and not math.isnan(cast("float", value))


def _is_size(value: object) -> bool:
    return TYPES["integer"](value) and cast("float", value) >= 0


_Expected: TypeAlias = "tuple[str, Callable[[object], bool]]"

_ANYTHING: _Expected = ("anything", lambda _: True)

_EXPECTED: Mapping[str, _Expected] = {
    "type": (f"{', '.join(TYPES)}, or a list of these", _is_type),
    "enum": ("a list of values", lambda value: isinstance(value, (list, tuple))),
    "required": ("a list of names", _is_texts),
    "pattern": ("a regular expression", _is_pattern),
    **dict.fromkeys(_SCHEMAS, ("a mapping of names to schemas", _is_table)),
    **dict.fromkeys(_FORMS, ("a list of schemas", lambda value: bool(_listed(value)))),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), ("a number", _is_bound)
    ),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems"), ("a whole number from 0", _is_size)
    ),
}
"""What keywords may say; what is a schema itself is looked at as one."""
