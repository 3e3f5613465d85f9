"""From the bytes of a policy file to a mapping: the one place that reads TOML."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, cast

from otel_loopguard.options.errors import PolicyError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEEPEST = 30
"""So many tables and lists may stand in one another, which is more than any option needs."""

_LINE = re.compile(r"\(at line (\d+)")
_TOO_DEEP = f"more than {DEEPEST} tables and lists stand in one another"


def decoded(data: bytes) -> str:
    """Return the text of a file, without the mark that some editors put before UTF-8.

    Raises:
        PolicyError: if this is no UTF-8; names the line.

    """
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"expected UTF-8 text (at line {line})", line=line) from None


def read_toml(text: str, kind: str = "TOML") -> dict[str, Any]:
    """Return what a text of TOML says; an error calls what was expected `kind`.

    Raises:
        PolicyError: if this is no TOML, or none that can be read; names the line where it can.

    """
    line = None
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        why = str(error)
        told = _LINE.search(why)
        line = int(told[1]) if told else text.count("\n") + 1
    except RecursionError:
        why = _TOO_DEEP
    except ValueError:  # of `int`, which reads no more digits than that
        why = f"a number in it has more than {sys.get_int_max_str_digits()} digits"
    else:
        if not _is_deep(said):
            return said
        why = _TOO_DEEP
    raise PolicyError(f"expected {kind}, but {why}", line=line)


def _is_deep(said: Mapping[str, Any]) -> bool:
    """Say so without going down by calls: dotted keys make what no stack can follow."""
    level: list[Any] = [said]
    for _ in range(DEEPEST):
        inside = (inner for each in level for inner in _inside(each))
        level = [inner for inner in inside if isinstance(inner, (dict, list))]
    return bool(level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value)
