"""All that is wrong with the text of a policy file, and in which lines."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from otel_loopguard.options.errors import joined, quoted
from otel_loopguard.options.toml_lines import Keys, lines_of
from otel_loopguard.options.toml_text import read_toml
from otel_loopguard.policy import Policy, PolicyError

MISTAKES = 100
"""Mistakes of one file that are told of."""

_MORE = "there are more mistakes than the {} that are named; correct those first"
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


def examine(text: str, *, most: int = MISTAKES) -> Examined:
    """Read the text of a `loopguard.toml`, and go on behind each mistake, up to so many."""
    try:
        said = read_toml(text)
    except PolicyError as error:
        return not_read(str(error), error.line)
    lines = lines_of(text)
    found = [*islice(_mistakes(said, lines), most + 1)]
    if not found:
        policy = Policy.from_mapping(said)
        return Examined(policy=policy, doubts=_doubts(policy, said, lines))
    in_order = sorted(found[:most], key=lambda remark: remark.line or 0)
    more = found[most:] and [Remark(message=_MORE.format(most))]
    return Examined(policy=None, mistakes=(*in_order, *more))


def not_read(message: str, line: int | None) -> Examined:
    """Return what became of a file that could not be read."""
    return Examined(policy=None, mistakes=(Remark(message=message, line=line),))


def unread(path: str, error: PolicyError) -> Examined:
    """Return what became of a file of which `read_text` says that it cannot be read."""
    return not_read(str(error).removeprefix(f"{path}: "), error.line)


def placed(said: str, path: str | None, line: int | None) -> str:
    """Return what is said of a file, with the line that it is about, if there is one."""
    return f"{path}: {said}" if line is None else f"{path}:{line}: {said}"


def _mistakes(said: Mapping[str, Any], lines: Mapping[Keys, int]) -> Iterator[Remark]:
    left, taken_out = copy.deepcopy({**said}), set[str]()
    # One more may follow from each. Two long names that errors cut to the same text are one place
    # here: without an end, what is put in for the one would be taken out for the other, again and
    # again.
    for _ in range(2 * (MISTAKES + 1)):
        try:
            Policy.from_mapping(left)
        except PolicyError as error:
            path, keys = error.path, _take_out(error.path, left)
            # What lacks something that was taken out, there or in a table around it, lacks
            # nothing in the file.
            if not any(_leads(path, each) for each in taken_out):
                yield Remark(message=str(error), path=path, line=lines.get(keys))
            taken_out.add(path)
        else:
            return


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
            # An agent's name is always shown between quotes.
            own = f"{shown}.{quoted(key)}" if keys == ("agents",) else joined(shown, key)
            yield own, here
            yield from _places(each, here, own)
