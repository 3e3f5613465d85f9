"""In which line a key of a TOML text stands, whatever the text looks like."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as some

from otel_loopguard.options.toml_lines import Keys, lines_of
from tests._tables import is_list, is_table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BARE = {*"abcdefghijklmnopqrstuvwxyz0123456789_-"}
MISLEADING = [
    *('a"', 'a""', "a''", 'a\n""\n"', "x\n[a]\n'"),
    *("plain", "", "# no comment", "[limits]", "max_steps = 3", "it's", 'a "word"', "]", "}", "{,"),
    *("back\\slash", "\\", '\\"', "two\nlines\n[b]\n", "\n", "'''", '"""', '""', "''", "\t"),
]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", {}),
        ("# only\n\n", {}),
        ("a = 1", {("a",): 1}),
        ("\n\n  a = 1 # b = 2\nb = 3\n", {("a",): 3, ("b",): 4}),
        ("a.b = 1\na.c = 2", {("a",): 1, ("a", "b"): 1, ("a", "c"): 2}),
        ("[a]\r\nb = 1\r\n[c]\r\n", {("a",): 1, ("a", "b"): 2, ("c",): 3}),
        ("[ a . 'b.c' ]\n\"d\\u0041\" = 1", {("a",): 1, ("a", "b.c"): 1, ("a", "b.c", "dA"): 2}),
        ('a = """\nb = 1\n\\""" [c]\n"""\nd = 2', {("a",): 1, ("d",): 5}),
        ("a = \"\"\"x\"\"\"\"\"\nb = '''\n'''''\nc = 1", {("a",): 1, ("b",): 2, ("c",): 4}),
        (
            "a = [ # [\n  1,\n  { b = [2,\n 3], 'c' = 4 },\n]\nd = 1",
            {
                ("a",): 1,
                ("a", 0): 2,
                ("a", 1): 3,
                ("a", 1, "b"): 3,
                ("a", 1, "b", 0): 3,
                ("a", 1, "b", 1): 4,
                ("a", 1, "c"): 4,
                ("d",): 6,
            },
        ),
        (
            "[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\nb = 3\n[[a.e]]\n[[a.e]]\nf = 4",
            {
                ("a",): 1,
                ("a", 0): 1,
                ("a", 0, "b"): 2,
                ("a", 0, "c"): 3,
                ("a", 0, "c", "d"): 4,
                ("a", 1): 5,
                ("a", 1, "b"): 6,
                ("a", 1, "e"): 7,
                ("a", 1, "e", 0): 7,
                ("a", 1, "e", 1): 8,
                ("a", 1, "e", 1, "f"): 9,
            },
        ),
        ("a = 1979-05-27 07:32:00Z # x\nb = [[], [[1]], {}]\nc = inf", None),
    ],
)
def test_lines(text: str, lines: dict[Keys, int] | None):
    found = lines_of(text)

    assert {*found} == {*places(tomllib.loads(text))}
    assert found == lines or lines is None


def places(value: Any, path: Keys = ()) -> list[Keys]:
    """Return where there is something in a document."""
    if is_table(value):
        entries: list[tuple[Any, Any]] = [*value.items()]
    elif is_list(value):
        entries = [*enumerate(value)]
    else:
        return []
    paths: list[Keys] = []
    for key, each in entries:
        here = (*path, key)
        paths += [here, *places(each, here)]
    return paths


class Writer(NamedTuple):
    """Writes a document in one of many ways, and keeps count of its lines."""

    draw: some.DrawFn
    parts: list[str]
    lines: dict[Keys, int]

    def add(self, text: str) -> None:
        self.parts.append(text)

    def note(self, path: Keys) -> None:
        self.lines.setdefault(path, "".join(self.parts).count("\n") + 1)

    def pick(self, *texts: str) -> str:
        return self.draw(some.sampled_from(texts))

    def key(self, key: str) -> None:
        quoted = json.dumps(key)
        literal = [f"'{key}'"] if key and "'" not in key and "\n" not in key else []
        bare = [key] if key and {*key} <= BARE else []
        self.add(self.pick(quoted, *literal, *bare))

    def dotted(self, path: Keys, start: int) -> None:
        for place in range(start, len(path)):
            self.note(path[: place + 1])
            self.key(str(path[place]))
            self.add(self.pick("", " ") + "." if place + 1 < len(path) else self.pick("", " "))

    def text(self, value: str) -> None:
        """Write a string."""
        ways = [json.dumps(value)]
        if "'" not in value and "\n" not in value:
            ways.append(f"'{value}'")
        if "'''" not in value:
            ways.append(f"'''\n{value}'''")
        escaped = value.replace("\\", "\\\\").replace('"""', '""\\"')
        ways.append(f'"""\n{escaped}"""')  # up to two quotes may stand before the end
        self.add(self.pick(*ways))

    def value(self, value: Any, path: Keys) -> None:
        if isinstance(value, str):
            self.text(value)
        elif is_list(value):
            self.add("[")
            for place, each in enumerate(value):
                self.add(self.pick("", " ", "\n", " # ] [[x]]\n\n"))
                self.note((*path, place))
                self.value(each, (*path, place))
                last = place + 1 == len(value)
                self.add(self.pick("", "\n", ",") if last else self.pick(",", "\n,", ", #\n"))
            self.add(self.pick("]", "\n]"))
        elif is_table(value):
            self.add("{")
            for place, (key, each) in enumerate(value.items()):
                self.add(", " if place else self.pick("", " "))
                self.pair((*path, key), len(path), each)
            self.add(self.pick("", " ") + "}")
        else:
            self.add(json.dumps(value))

    def pair(self, path: Keys, start: int, value: Any) -> None:
        if is_table(value) and len(value) == 1 and self.draw(some.booleans()):
            [(key, inner)] = value.items()
            return self.pair((*path, key), start, inner)
        self.dotted(path, start)
        self.add(self.pick("=", " = "))
        return self.value(value, path)

    def table(self, table: dict[str, Any], path: Keys) -> None:
        """Write what is in a table: pairs first, then tables under headings of their own."""
        later: list[tuple[str, Any]] = []
        for key, value in table.items():
            tables = is_list(value) and value and all(is_table(v) for v in value)
            if (tables or is_table(value)) and self.pick("here", "later") == "later":
                later.append((key, value))
                continue
            self.pair((*path, key), len(path), value)
            self.add(self.pick("\n", " # a = 1\n", "\r\n", "\n\n"))
        for key, value in later:
            for place, each in enumerate(value if is_list(value) else [value]):
                own: Keys = (*path, key, place) if is_list(value) else (*path, key)
                self.heading(own, brackets=2 if is_list(value) else 1)
                self.table(each, own)

    def heading(self, path: Keys, brackets: int) -> None:
        self.add("[" * brackets + self.pick("", " "))
        for length in range(1, len(path) + 1):
            self.note(path[:length])
        named = [part for part in path if isinstance(part, str)]
        for place, part in enumerate(named):
            self.key(part)
            self.add(" . " if place + 1 < len(named) else " ")
        self.add("]" * brackets + self.pick("\n", " # [x]\n"))


keys = some.sampled_from(["a", "b", "limits", "max_steps", "a.b", "", "it's", 'a "b"', "ü", "# x"])
values = some.recursive(
    some.integers(-3, 3) | some.booleans() | some.sampled_from(MISLEADING),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(keys, inner, max_size=3)
        | some.lists(some.dictionaries(keys, inner, max_size=3), min_size=1, max_size=3)
    ),
    max_leaves=12,
)


@some.composite
def documents(draw: some.DrawFn) -> tuple[dict[str, Any], str, dict[Keys, int]]:
    """Draw a document, a text of it, and the line of each key."""
    document = draw(some.dictionaries(keys, values, max_size=4))
    writer = Writer(draw, [], {})
    writer.table(document, ())
    return document, "".join(writer.parts), writer.lines


def test_what_is_no_toml_is_not_read_for_ever():
    with pytest.raises(ValueError, match=r"^expected TOML, but there is no key at 0$"):
        lines_of("= 1")


@given(documents())
def test_the_line_of_each_key_is_right(written: tuple[dict[str, Any], str, dict[Keys, int]]):
    document, text, lines = written

    assert tomllib.loads(text) == document
    assert lines_of(text) == lines
