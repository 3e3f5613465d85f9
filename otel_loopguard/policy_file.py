"""A policy file that may change: whether it has, and what it says by then."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from otel_loopguard.environment import (
    BYTES,
    OF_A_BAD_FILE,
    TOO_LARGE,
    Configuration,
    lay_over,
    read_text,
)
from otel_loopguard.mistakes import examine, not_read, placed, unread
from otel_loopguard.policy import PolicyError

MISTAKES = 10
"""Mistakes of the file that are told of."""

REST_NS = 1_000_000_000
"""Nanoseconds for which nobody has written to a file that is read: it may be half written, and on
some file systems what is written within one second looks the same."""


class Stamp(NamedTuple):
    """What tells one state of a file from another, without reading it."""

    written_ns: int
    changed_ns: int
    """When its name, its owner or its permissions changed, too."""
    size: int
    inode: int
    device: int


State: TypeAlias = Stamp | str
"""The stamp of a file, or why there is none to read."""


def state_of(path: str) -> State:
    """Return the state of a file, or of the one that links lead to."""
    try:
        found = os.stat(path)  # noqa: PTH116 -- the path is never made an object of, each second
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if found.st_size > BYTES:
        return TOO_LARGE
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)


def is_at_rest(state: State) -> bool:
    """Say whether a file can be read at once; one that is gone may be about to come back."""
    if isinstance(state, str):
        return False
    return abs(time.time_ns() - state.written_ns) >= REST_NS


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a policy file."""

    text: str | None = None
    """`None` if it cannot be read."""
    said: Configuration | None = None
    """What it says, with the variables laid over it; `None` if that cannot be followed."""
    mistakes: tuple[str, ...] = ()
    """What is wrong, as `check-config` says it: with path, line, and what was expected."""


_EMPTY = not_read(
    "the policy file is empty: expected a table or a key; if the default policy is meant, write "
    "[limits]",
    None,
)
"""What became of a file that was not empty before: somebody may have emptied it to write it."""


def found_in(
    path: str, name: str, variables: Mapping[str, str], *, state: State, before: str | None
) -> Found | None:
    """Read a policy file in this state, which mistakes call by its `name`.

    Return `None` if the text is the one from `before`.
    """
    text = None
    if isinstance(state, str):
        examined = not_read(f"the policy file cannot be read: {state}", None)
    else:
        try:
            text = read_text(path)
        except PolicyError as error:
            examined = unread(path, error)
        else:
            if text == before:
                return None
            examined = examine(text, most=MISTAKES) if _says_something(text) else _EMPTY
    said, of_variables = lay_over(examined.policy or OF_A_BAD_FILE, variables)
    in_file = (placed(remark.message, name, remark.line) for remark in examined.mistakes)
    mistakes = (*in_file, *map(str, of_variables))
    return Found(text=text, said=None if mistakes else said, mistakes=mistakes)


def _says_something(text: str) -> bool:
    """Say whether a text has more than comments, as far as TOML goes."""
    lines = (line.strip() for line in text.splitlines())
    return any(line and not line.startswith("#") for line in lines)
