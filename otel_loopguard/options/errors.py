"""What is wrong with a policy: where, what was expected, and what was probably meant."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

_SHOWN = 200
_NAME_TO_GUESS_FROM = 100
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class PolicyError(ValueError):
    """A policy that cannot be followed; the text names path, value and expectation.

    Attributes:
        path: what is wrong, as the text names it (`limits.max_steps`); empty for a whole file.
        line: where a text cannot be read, from 1; `None` if that is not known, or it was read.

    """

    def __init__(self, message: str, *, path: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


def joined(path: str, key: str) -> str:
    """Return the path of what has this key in a table; the top is "", the key is shown `as_key`."""
    return f"{path}.{as_key(key)}" if path else as_key(key)


def as_key(name: str) -> str:
    """Return a name as a part of a path: cut if it is long, quoted as in TOML where it must be."""
    return cut(name) if _BARE.fullmatch(name) else quoted(name)


def quoted(name: str) -> str:
    """Return a name between quotes, cut if it is long."""
    return cut(json.dumps(name, ensure_ascii=False))


def refuse_unknown(
    mapping: Mapping[str, object],
    names: Iterable[str],
    path: str,
    hints: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse a name that is none of `names`.

    Raises:
        PolicyError: says what was probably meant, or what `hints` says of that name.

    """
    allowed = tuple(names)
    for name in mapping:
        if name not in allowed:
            near = nearest(name, allowed)
            guess = f"did you mean {near!r}?" if near else f"expected one of {', '.join(allowed)}"
            shown = f"{path}{as_key(name)}"
            message = f"{shown}: there is no such option here; {hints.get(name, guess)}"
            raise PolicyError(message, path=shown)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant, if there is one."""
    near = difflib.get_close_matches(name[:_NAME_TO_GUESS_FROM], tuple(names), n=1)
    return near[0] if near else None


def wrong(path: str, expected: str, value: object) -> PolicyError:
    """Return the error for a value that is not what was expected."""
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 -- a foreign value, or an integer too long to print
        shown = f"a {type(value).__qualname__} that cannot be shown"
    return PolicyError(f"{path}: expected {expected}, got {cut(shown)}", path=path)


def cut(text: str) -> str:
    """Return a text as errors show it: not all of it if it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
