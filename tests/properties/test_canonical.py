"""Fingerprints are equal exactly when a naive reading of RFC 8785 says that the values are."""

from __future__ import annotations

import collections
import copy
import json
import math
import pathlib
import types
import unicodedata
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, TypeAlias

from hypothesis import example, given
from hypothesis import strategies as st

from otel_loopguard.canonical import UNKNOWN, canonical, fingerprint
from otel_loopguard.values._normal_form import normal_form
from tests._examples import examples
from tests.unit._specimens import Bit, Colour, Left, Right, Word

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# Few values that are easily confused, so that equal ones meet, and now and then any other. Of the
# surrogates, one that makes no pair: two halves of a character are that character in JSON text.
CONFUSABLE: list[Json] = [
    *(
        None,
        True,
        False,
        "",
        "a",
        "b",
        "1",
        "1.0",
        "true",
        "null",
        "NaN",
        "{}",
        "[1]",
        "a b",
        "a  b",
    ),
    *(
        "é",
        "e\u0301",
        "\u212b",
        "\u00c5",
        "\U0001f600",
        "\uffff",
        "\udc80",
        "\n",
        "n\u0303",
        '"',
        "\\",
    ),
    *(0, -0.0, 1, 1.0, -1, 1.5, 0.1, 1e-7, 5e-324, 1e16, 10**16, 1e22, 10**22, 1e23, 10**23, 1e300),
    *(10**300, 2**53, 2**53 + 1, float(2**53), 2**63, 2**64, -(2**64), 10**400, 10**401, 10**1000),
    *(math.nan, math.inf, -math.inf),
]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
scalars = st.sampled_from(CONFUSABLE) | st.integers() | st.floats() | texts
keys = st.sampled_from([item for item in CONFUSABLE if isinstance(item, str)]) | texts


def values_with(some_keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(some_keys, inner, max_size=4),
        max_leaves=8,
    )


values = values_with(keys)


def naive(value: Json) -> object:
    """Return something that is equal for equal JSON values, by the definition and nothing else."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return ("text", unicodedata.normalize("NFC", value))
    if isinstance(value, list):
        return ("list", [naive(item) for item in value])
    if isinstance(value, dict):
        return ("object", sorted(repr((naive(key), naive(value[key]))) for key in value))
    # A double stands for the decimal that `repr` writes.
    text = repr(value)
    return ("number", Fraction(text) if text[-1].isdigit() else text)


def spelled(value: Json, random: Random) -> str:
    """Return JSON text of a value: keys, spaces, escapes and numbers as chance would have them."""
    space = random.choice(["", "", " ", "\n\t "])
    if isinstance(value, list):
        return f"{space}[{','.join(spelled(item, random) for item in value) or space}]{space}"
    if isinstance(value, dict):
        members = [f"{spelled(key, random)}:{spelled(value[key], random)}" for key in value]
        random.shuffle(members)
        return f"{space}{{{','.join(members) or space}}}{space}"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=random.random() < 0.5)
    elif isinstance(value, bool) or not repr(value)[-1].isdigit():
        text = json.dumps(value)
    else:
        text = respelled(Decimal(repr(value)), random)
    return f"{space}{text}{space}"


def respelled(number: Decimal, random: Random) -> str:
    """Return a number with the point somewhere, the exponent that this takes, and more zeros."""
    sign, digits, exponent = number.as_tuple()
    zeros = random.randrange(3)
    text = "".join(map(str, digits)) + "0" * zeros
    point = random.randrange(len(text) + 1) if number else random.randrange(2)
    power = int(exponent) - zeros + len(text) - point
    fraction = f".{text[point:]}" if point < len(text) else ""
    mark = random.choice(["e", "E", "e+", "E+"] if power >= 0 else ["e", "E"])
    written = f"{mark}{power}" if power or random.random() < 0.5 else ""
    return f"{'-' * sign}{text[:point] or 0}{fraction}{written}"


@given(values, values)
@example({"a": 1.0, "é": 2, "e\u0301": 3}, {"a": 1, "é": 3, "e\u0301": 2})
@example([10**401], [1])
def test_fingerprints_are_equal_exactly_when_the_values_are(one: Json, other: Json) -> None:
    # In a list, since text by itself is read as JSON.
    same = naive(one) == naive(other)

    assert (canonical([one]) == canonical([other])) is same
    assert (fingerprint([one]) == fingerprint([other])) is same
    assert fingerprint([one]) is not None


@given(values, st.randoms(use_true_random=False))
def test_json_text_is_its_value_however_it_is_spelled(value: Json, random: Random) -> None:
    text = spelled([value], random)

    assert canonical(text) == canonical([value])
    assert canonical(json.dumps(text)) == canonical([value])


@given(values)
def test_the_fast_way_and_the_thorough_way_write_one_text(value: Json) -> None:
    assert normal_form([value], UNKNOWN) == canonical([value])


@given(values_with(keys.map(lambda key: unicodedata.normalize("NFC", key))))
def test_canonical_text_is_its_own_canonical_text(value: Json) -> None:
    text = canonical([value])

    assert text is not UNKNOWN
    assert canonical(text.decode()) == text


stamps = st.datetimes() | st.datetimes(timezones=st.timezones())
frozen = (
    scalars
    | st.binary(max_size=5)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers()
    | stamps
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from([Colour.RED, Word.YES, Bit.A, Bit.A | Bit.C, range(9), int, len, ...])
    | st.builds(pathlib.PurePosixPath, st.sampled_from(["a", "a/b"]))
)
hashable = st.recursive(
    frozen, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4
)
objects: st.SearchStrategy[Any] = st.recursive(
    hashable | st.binary(max_size=5).map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.builds(Left, inner)
        | st.builds(Right, inner)
        | st.builds(types.SimpleNamespace, name=inner)
        | st.builds(ValueError, inner)
        | st.lists(inner, max_size=3).map(collections.deque)
    ),
    max_leaves=8,
)


@given(objects)
def test_any_value_equals_its_copy(value: object) -> None:
    text = canonical(value)

    assert isinstance(text, bytes)
    assert text == canonical(value)
    assert text == canonical(copy.deepcopy(value))


def graph(edges: list[list[int]]) -> list[object]:
    """Return lists that hold each other: the n-th holds those whose numbers `edges[n]` has."""
    nodes: list[list[object]] = [[] for _ in edges]
    for node, targets in zip(nodes, edges, strict=True):
        node.extend(nodes[target % len(nodes)] for target in targets)
    return nodes[0]


@examples(50)
@given(st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=5))
def test_a_circular_value_equals_one_of_the_same_structure(edges: list[list[int]]) -> None:
    text = canonical(graph(edges))

    assert isinstance(text, bytes)
    assert text == canonical(graph(edges))
    assert text != canonical([graph(edges)])
