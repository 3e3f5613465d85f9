"""An OTLP/JSON trace request -> the same request sanitised: what is not listed here is left out.

So is what is of another type than its field has: readers skip much of it, whatever it says.

Kept are the fields that say what happened when and where: kinds, flags, statuses, counts of what
was dropped, and the names and versions of scopes and schemas that are known. Ids become others,
times are moved, and all texts go through `Texts`; so do numbers, but for what was used.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from otel_loopguard.sanitising.texts import Texts

_Read: TypeAlias = "Callable[[Request, object], object]"

_USED: Final = re.compile(
    r"gen_ai\.(?:aggregated_)?usage\..+|ai\.usage\..+|llm\.(?:token_count|cost)\..+|operation\.cost"
)
"""Attributes with numbers that are kept."""
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_VERSION: Final = re.compile(
    r"[0-9]+(?:\.[0-9]+)*(?:[-.+]?(?:a|b|rc|dev|beta|alpha|post)\.?[0-9]*)?"
)
_SCHEMA: Final = re.compile(r"https://opentelemetry\.io/schemas/[0-9.]+(?:-dev)?")
_WRITTEN: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
"""A number without its sign."""
_NAMED_NUMBER: Final = re.compile(r"-?[0-9]{1,20}|(?:SPAN_KIND|STATUS_CODE)_[A-Z]{1,20}")
_NO_NUMBERS: Final = frozenset({"NaN", "nan", "Infinity", "inf", "-Infinity", "-inf"})
_KINDS: Final = frozenset(
    (
        *("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "arrayValue"),
        "kvlistValue",
    )
)
"""What an attribute may hold."""
_PLACE: Final = re.compile(r"(?<=\.)[0-9]{1,4}(?=\.|$)")
"""The number of a message or a call in a flattened name."""


class Request:
    """Sanitises requests of one recording."""

    def __init__(self, texts: Texts, *, shift_ns: int) -> None:
        """Move times by `shift_ns` nanoseconds, and replace texts so."""
        self._texts = texts
        self._shift_ns = shift_ns

    def sanitised(self, data: object) -> object:
        """Return a request, plain JSON data, with placeholders."""
        return self.message(data, _REQUEST)

    def key(self, name: str) -> str:
        """Return the name of an attribute; the numbers in flattened ones stay."""
        places = _PLACE.findall(name)
        parts = _PLACE.split(name)
        told = [self._texts.replaced(part) for part in parts]
        return "".join(part + place for part, place in zip(told, [*places, ""], strict=True))

    def text(self, value: object) -> object:
        """Return a text with placeholders."""
        return self._texts.replaced(value) if isinstance(value, str) else None

    def version(self, value: object) -> object:
        """Return a version, or what stands for a text that is none."""
        is_version = isinstance(value, str) and _VERSION.fullmatch(value)
        return value if is_version else self.text(value)

    def schema(self, value: object) -> object:
        """Return the address of a public schema, or what stands for another one."""
        is_public = isinstance(value, str) and _SCHEMA.fullmatch(value)
        return value if is_public else self.text(value)

    def id(self, value: object) -> object:
        """Return another id of as many bytes, in hex."""
        if not isinstance(value, str):
            return None
        is_hex = re.fullmatch("[0-9A-Fa-f]{16}|[0-9A-Fa-f]{32}", value) is not None
        data = bytes.fromhex(value) if is_hex else _octets(value)
        return self._texts.octets(data).hex() if any(data) else data.hex()

    def time(self, value: object) -> object:
        """Return a moment in nanoseconds, moved; none stays none."""
        shown = str(int(value) if isinstance(value, float) and value.is_integer() else value)
        if not shown.isdecimal():  # nothing that a reader of spans asks for, else it had complained
            return None
        if not int(shown):
            return value
        moved = int(shown) + self._shift_ns
        return str(moved) if isinstance(value, str) else moved

    def number(self, value: object) -> object:
        """Return a number, or the text of one, as it is; what is neither is left out."""
        if isinstance(value, str):
            return value if _NAMED_NUMBER.fullmatch(value) else None
        return value if isinstance(value, (int, float)) else None

    def attributes(self, value: object) -> object:
        """Return attributes with other values."""
        return [self._attribute(pair) for pair in _members_in(value)]

    def several(self, fields: Mapping[str, _Read]) -> _Read:
        """Return what reads a list of messages."""
        return lambda _, value: [self.message(item, fields) for item in _members_in(value)]

    def message(self, value: object, fields: Mapping[str, _Read]) -> object:
        """Return a message with those of its fields that are known."""
        if not isinstance(value, dict):
            return None
        found: dict[str, object] = {}
        for name, item in cast("dict[str, object]", value).items():
            read = fields.get(name) or fields.get(_camel(name))
            if read is not None:
                found[name] = read(self, item)
        return found

    def _attribute(self, pair: dict[str, object]) -> object:
        name = pair.get("key", "")
        if not isinstance(name, str):
            return {}
        found: dict[str, object] = {"key": self.key(name)}
        if "value" in pair:
            is_used = _USED.fullmatch(name) is not None
            found["value"] = self._value(pair["value"], is_used=is_used)
        return found

    def _value(self, value: object, *, is_used: bool) -> object:
        if not isinstance(value, dict):
            return None
        return {
            name: self._any_value(kind, item, is_used=is_used)
            for name, item in cast("dict[str, object]", value).items()
            if (kind := _camel(name)) in _KINDS
        }

    def _any_value(self, kind: str, item: object, *, is_used: bool) -> object:
        if kind in {"arrayValue", "kvlistValue"}:
            listed = cast("dict[str, object]", item).get("values") if isinstance(item, dict) else ()
            if kind == "kvlistValue":
                return {"values": self.attributes(listed)}
            return {"values": [self._value(each, is_used=is_used) for each in _items(listed)]}
        if kind == "stringValue":
            counted = is_used and isinstance(item, str) and _NUMBER.fullmatch(item)
            return item if counted else self.text(item)
        if kind in {"intValue", "doubleValue"}:
            return _counted(item) if is_used else self._other_number(item)
        if kind == "bytesValue" and isinstance(item, str):
            return base64.b64encode(self._texts.octets(_octets(item))).decode()
        return item if kind == "boolValue" and isinstance(item, bool) else None

    def _other_number(self, item: object) -> object:
        if isinstance(item, bool) or not isinstance(item, (int, float, str)):
            return None
        shown = item if isinstance(item, str) else repr(item)
        sign, told = ("-", shown[1:]) if shown.startswith("-") else ("", shown)
        if not _WRITTEN.fullmatch(told):
            return item if shown in _NO_NUMBERS else None
        drawn = sign + self._texts.number(told)
        return drawn if isinstance(item, str) else type(item)(drawn)


def _counted(item: object) -> object:
    """Return a number of what was used, or the text of one; what is neither is left out."""
    if isinstance(item, str):
        told = item.removeprefix("-")
        return item if _WRITTEN.fullmatch(told) or item in _NO_NUMBERS else None
    return item if isinstance(item, (int, float)) and not isinstance(item, bool) else None


def _octets(text: str) -> bytes:
    """Return what base64 says; nothing where it is none."""
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _members_in(value: object) -> list[dict[str, object]]:
    return [cast("dict[str, object]", item) for item in _items(value) if isinstance(item, dict)]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _one(fields: Mapping[str, _Read]) -> _Read:
    return lambda request, value: request.message(value, fields)


def _each(fields: Mapping[str, _Read]) -> _Read:
    return lambda request, value: request.several(fields)(request, value)


_LINK: Final[Mapping[str, _Read]] = {
    "traceId": Request.id,
    "spanId": Request.id,
    "attributes": Request.attributes,
    "droppedAttributesCount": Request.number,
    "flags": Request.number,
}
_EVENT: Final[Mapping[str, _Read]] = {
    "timeUnixNano": Request.time,
    "name": Request.text,
    "attributes": Request.attributes,
    "droppedAttributesCount": Request.number,
}
_SPAN: Final[Mapping[str, _Read]] = {
    "traceId": Request.id,
    "spanId": Request.id,
    "parentSpanId": Request.id,
    "flags": Request.number,
    "name": Request.text,
    "kind": Request.number,
    "startTimeUnixNano": Request.time,
    "endTimeUnixNano": Request.time,
    "attributes": Request.attributes,
    "droppedAttributesCount": Request.number,
    "events": _each(_EVENT),
    "droppedEventsCount": Request.number,
    "links": _each(_LINK),
    "droppedLinksCount": Request.number,
    "status": _one({"code": Request.number, "message": Request.text}),
}
_SCOPE: Final[Mapping[str, _Read]] = {
    "name": Request.text,
    "version": Request.version,
    "attributes": Request.attributes,
    "droppedAttributesCount": Request.number,
}
_REQUEST: Final[Mapping[str, _Read]] = {
    "resourceSpans": _each(
        {
            "resource": _one(
                {"attributes": Request.attributes, "droppedAttributesCount": Request.number}
            ),
            "scopeSpans": _each(
                {"scope": _one(_SCOPE), "spans": _each(_SPAN), "schemaUrl": Request.schema}
            ),
            "schemaUrl": Request.schema,
        }
    )
}
