"""In which line of a TOML text each key stands: what `tomllib` does not tell.

The text must be one that `tomllib` has read without complaint: little is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from otel_loopguard.options.toml_text import read_toml

Keys: TypeAlias = "tuple[str | int, ...]"
"""Where a value stands: names of tables and keys, and places in lists from 0."""

_QUOTED = r'"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'"
_KEY = re.compile(rf"[A-Za-z0-9_-]+|{_QUOTED}")
_LONG_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}' + r"|'''.*?'{3,5}", re.DOTALL)
_STRING = re.compile(_QUOTED)
_BLANK = re.compile(r"[ \t]*")
_NOTHING = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")


def lines_of(text: str) -> Mapping[Keys, int]:
    """Return the line of each key and of each place in a list, from 1.

    Of a table that several lines speak of, it is the first of them.

    Raises:
        ValueError: if this is no TOML; that is not said of every text which is none.

    """
    return _Scan(text).lines


class _Scan:
    """One reading of one text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._text = text
        self._at = 0
        self._line, self._counted = 1, 0
        self._lists: dict[Keys, int] = {}
        """How many tables each list of tables has so far."""
        table: Keys = ()
        self._skip(_NOTHING)
        while self._at < len(text):
            table = self._statement(table)
            self._skip(_NOTHING)

    def _statement(self, table: Keys) -> Keys:
        """Read a heading or a pair; return the table that what follows belongs to."""
        if self._text.startswith("[[", self._at):
            self._at += 2
            heading = self._heading(2, is_list=True)
            self._lists[heading] = self._lists.get(heading, 0) + 1
            return self._note((*heading, self._lists[heading] - 1))
        if self._text[self._at] == "[":
            self._at += 1
            return self._heading(1, is_list=False)
        self._pair(table)
        return table

    def _heading(self, brackets: int, *, is_list: bool) -> Keys:
        self._skip(_BLANK)
        keys = self._dotted()
        path: Keys = ()
        for place, key in enumerate(keys):
            path = self._note((*path, key))
            if path in self._lists and not (is_list and place == len(keys) - 1):
                path = (*path, self._lists[path] - 1)
        self._at += brackets
        return path

    def _pair(self, table: Keys) -> None:
        path = table
        for key in self._dotted():
            path = self._note((*path, key))
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _dotted(self) -> list[str]:
        keys: list[str] = []
        while True:
            raw = self._skip(_KEY)
            if not raw:
                raise ValueError(f"expected TOML, but there is no key at {self._at}")
            quoted = raw[:1] in {'"', "'"}
            keys.append(str(read_toml(f"key = {raw}")["key"]) if quoted else raw)
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1
            self._skip(_BLANK)

    def _value(self, path: Keys) -> None:
        opening = self._text[self._at]
        if opening == "[":
            self._items(path)
        elif opening == "{":
            self._pairs(path)
        elif not (self._skip(_LONG_STRING) or self._skip(_STRING)):
            self._skip(_SCALAR)

    def _items(self, path: Keys) -> None:
        place = 0
        while not self._ends("]"):
            self._value(self._note((*path, place)))
            place += 1

    def _pairs(self, path: Keys) -> None:
        while not self._ends("}"):
            self._pair(path)

    def _ends(self, closing: str) -> bool:
        """Go past the opening, or a comma, and what is between; say whether the end comes then."""
        self._skip(_NOTHING)
        if self._text[self._at] in "[{,":
            self._at += 1
            self._skip(_NOTHING)
        if self._text[self._at] != closing:
            return False
        self._at += 1
        return True

    def _note(self, path: Keys) -> Keys:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        self.lines.setdefault(path, self._line)
        return path

    def _skip(self, what: re.Pattern[str]) -> str:
        found = what.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found.group()
