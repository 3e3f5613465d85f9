"""JSON text -> typed data, with errors that name the field, what was found and what was expected.

msgspec decodes; what it refuses although writers produce it (`NaN`, half of a surrogate pair where
a text was cut) is read by the standard library and converted.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

import msgspec

from otel_loopguard.replay.errors import FieldError, ReplayError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

_UNSAID: Final[Mapping[str, str]] = {
    "Integer value out of range": "a number in range",
    "Number out of range": "a number in range",
}
"""What is expected where msgspec's message does not say it."""

_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_PATH_PART = re.compile(r"\.?(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_WORDS: Final[Mapping[str, str]] = {
    "array": "an array",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a string",
}


class Reader(Generic[T]):
    """Reads JSON text as one type."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def read(self, line: bytes | str) -> T:
        """Return the JSON text `line` as that type.

        Raises:
            FieldError: a field is missing or has another type.
            ReplayError: `line` is no JSON.

        """
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError as error:
            raise _field_error(error, line) from error
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return convert(loads(line), self._kind)


def convert(value: object, kind: type[T]) -> T:
    """Return plain JSON data as `kind`.

    Raises:
        FieldError: a field is missing or has another type.
        ReplayError: `value` is nested too deeply, or a name in it is no valid text.

    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _field_error(error, value) from error
    except (UnicodeError, RecursionError) as error:
        message = f"the line cannot be read: {error}"
        raise ReplayError(message) from error


def loads(line: bytes | str) -> object:
    """Return `line` as plain JSON data; `NaN` and single surrogates are let through.

    Raises:
        ReplayError: `line` is no JSON, no UTF-8, or nested too deeply.

    """
    try:
        return json.loads(line)
    except UnicodeDecodeError as error:
        message = f"expected UTF-8 text, got {shown(line)}: {error.reason}"
        raise ReplayError(message) from error
    except RecursionError as error:
        message = "expected JSON, got one that is nested too deeply"
        raise ReplayError(message) from error
    except ValueError as error:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        message = f"expected JSON, got {shown(text)}: {error}"
        raise ReplayError(message) from error


def _field_error(error: msgspec.ValidationError, source: object) -> FieldError:
    place = _PLACE.match(str(error))
    what, text = (place["what"], place["path"] or "") if place else (str(error), "")
    path = _path(text)
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    if missing:
        return FieldError((*path, missing[1]), "this field", "nothing")
    wrong = re.fullmatch(r"Expected (.*?)(?:, got `\w+`)?", what)
    expected = _in_words(wrong[1]) if wrong else _UNSAID.get(what, f"another value ({what})")
    data = loads(source) if isinstance(source, (bytes, str)) else source
    return FieldError(path, expected, shown(_at(data, path)))


def _path(text: str) -> tuple[str | int, ...]:
    return tuple(
        int(part["index"]) if part["index"] else part["name"] or "..."
        for part in _PATH_PART.finditer(text)
    )


def _in_words(types: str) -> str:
    """Return msgspec's "`int | null`" as "a whole number or null"."""

    def words(match: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(name, name) for name in match[1].split(" | "))

    return re.sub(r"`([^`]*)`", words, types)


def _at(data: object, path: tuple[str | int, ...]) -> object:
    """Return what stands at `path`, as far as it can be followed."""
    if not path:
        return data
    found: object = None
    if isinstance(data, dict):
        found = cast("dict[str | int, object]", data).get(path[0])
    elif isinstance(data, list) and isinstance(path[0], int):
        found = cast("list[object]", data)[path[0]]
    return _at(found, path[1:])
