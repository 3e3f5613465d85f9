"""All that is wrong with the text of a policy file, and in which lines."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from otel_loopguard.options.errors import cut, joined, quoted
from otel_loopguard.options.toml_lines import Keys, lines_of
from otel_loopguard.policy import Policy, PolicyError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MISTAKES = 100
"""Mistakes of one file that are told of."""

_LINE = re.compile(r"\(at line (\d+)")
_TAKEN_BY_ANY_LIST = "x"
_TAKEN_BY_ANY_PRICE = 0


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is said of a policy file."""

    message: str
    """Names the path, what was expected there, and what to do."""
    path: str = ""
    line: int | None = None
    """From 1; `None` where it is about no line."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a policy file."""

    policy: Policy | None
    """`None` if there is a mistake."""
    mistakes: tuple[Remark, ...] = ()
    doubts: tuple[Remark, ...] = ()
    """The policy's warnings."""


def examine(text: str) -> Examined:
    """Read the text of a `loopguard.toml`, and go on behind each mistake, up to `MISTAKES`."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Examined(policy=None, mistakes=(_no_toml(text, error),))
    lines, left, found = lines_of(text), copy.deepcopy(said), list[Remark]()
    while len(found) < MISTAKES:
        try:
            policy = Policy.from_mapping(left)
        except PolicyError as error:
            keys = _take_out(error.path, left)
            found.append(Remark(message=str(error), path=error.path, line=lines.get(keys)))
            continue
        if not found:
            return Examined(policy=policy, doubts=_doubts(policy, said, lines))
        break
    in_order = sorted(found, key=lambda remark: remark.line or 0)
    return Examined(policy=None, mistakes=tuple(in_order))


def _no_toml(text: str, error: Exception) -> Remark:
    told = _LINE.search(str(error))
    line = int(told[1]) if told else text.count("\n") + 1
    return Remark(message=f"expected TOML, but {error}", line=line)


def _take_out(path: str, said: dict[str, Any]) -> Keys:
    """Make a mapping one without the mistake at a path; return the keys of where that stood."""
    places = dict(_places(said))
    shown = max((each for each in places if _leads(each, path)), key=len)
    keys = places[shown]
    container: Any = said
    for key in keys[:-1]:
        container = container[key]
    last = keys[-1]
    missing = path[len(shown) + 1 :]
    if isinstance(last, int):
        container[last] = _TAKEN_BY_ANY_LIST
    elif missing and isinstance(container[last], dict):
        container[last][missing] = _TAKEN_BY_ANY_PRICE
    else:
        del container[last]
    return keys


def _leads(shown: str, path: str) -> bool:
    return path == shown or path.startswith((f"{shown}.", f"{shown}["))


def _doubts(
    policy: Policy, said: Mapping[str, Any], lines: Mapping[Keys, int]
) -> tuple[Remark, ...]:
    places = dict(_places(said))
    return tuple(_doubt(warning, places, lines) for warning in policy.warnings)


def _doubt(warning: str, places: Mapping[str, Keys], lines: Mapping[Keys, int]) -> Remark:
    named = [each for each in places if warning.startswith((f"{each}:", f"{each},"))]
    path = max(named, key=len, default="")
    return Remark(message=warning, path=path, line=lines.get(places.get(path, ())))


def _places(value: Any, keys: Keys = (), shown: str = "") -> Iterator[tuple[str, Keys]]:
    """Walk through a mapping: each place as errors show it, and its keys."""
    if isinstance(value, list):
        for place, each in enumerate(cast("Sequence[Any]", value)):
            yield f"{shown}[{place}]", (*keys, place)
            yield from _places(each, (*keys, place), f"{shown}[{place}]")
    elif isinstance(value, dict):
        for key, each in cast("Mapping[str, Any]", value).items():
            here = (*keys, key)
            # A name that is not known is shown as it is, an agent's always between quotes.
            yield f"{shown}.{cut(key)}".removeprefix("."), here
            own = f"{shown}.{quoted(key)}" if keys == ("agents",) else joined(shown, key)
            yield own.removeprefix("."), here
            yield from _places(each, here, own.removeprefix("."))
