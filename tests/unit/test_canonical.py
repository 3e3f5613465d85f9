"""Which values are the same value and which are not: one fact a row."""

from __future__ import annotations

import collections
import decimal
import fractions
import functools
import json
import math
import types
import uuid
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as ET

import pytest

from otel_loopguard.canonical import canonical, fingerprint
from tests.unit._specimens import (
    Bit,
    Colour,
    Empty,
    Half,
    Left,
    Mirror,
    Model,
    Named,
    Octets,
    Odd,
    OneSlot,
    Other,
    Pair,
    Pickled,
    Private,
    Record,
    Right,
    Row,
    Shade,
    Slotted,
    Table,
    Text,
    Whole,
    Word,
    circular,
    doubly,
    nested,
    ring,
)

BERLIN = timezone(timedelta(hours=1))
NINES = "9" * 5000
UTC = timezone.utc


def element(text: str) -> ET.Element:
    made = ET.Element("a")
    made.text = text
    return made


EQUAL: list[tuple[str, object, object]] = [
    # JSON: keys, spaces, numbers
    ("order of keys", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ("order of keys in text", '{"a": 1, "b": [2]}', '{"b":[2],"a":1}'),
    ("text and value", '{"a": [1, true, null, "x"]}', {"a": [1, True, None, "x"]}),
    ("white space around", " \n{}\t", {}),
    ("integral float", {"a": 1.0}, {"a": 1}),
    ("integral float in text", '{"a": 1.0}', '{"a": 1e0}'),
    ("number", "1", 1),
    ("number with an exponent", "10E-1", 1),
    ("number that is a double away from an integer", "1.00000000000000000000001", 1),
    ("minus zero", -0.0, 0),
    ("minus zero in text", "-0", "-0.0"),
    ("fraction", '{"a": 1.50}', {"a": 1.5}),
    ("shortest spelling of a double", "0.1", "0.1000000000000000055511151231257827"),
    ("underflow", "1e-999999999", 0),
    ("large float", [1e16], [10**16]),
    ("float as JSON writers write it", [1e300], "[1000e297]"),
    ("integer with an exponent", 10**25, "1e25"),
    ("integers beyond doubles", 2**64 + 1, str(2**64 + 1)),
    ("integral spelling beyond doubles", "9007199254740993.0", 9007199254740993),
    ("5,000 digits", {"a": int(decimal.Decimal(NINES))}, f'{{"a": {NINES}}}'),
    ("5,000 digits and a fraction", f"[{NINES}.0]", f"[{NINES}]"),
    ("5,000 digits and a half", f"[{NINES}.5]", f"[{NINES}.50]"),
    ("many zeros", 10**1000, "1e1000"),
    ("many zeros in a string", {"a": "0" * 500, "b": 1.0}, {"a": "0" * 500, "b": 1}),
    ("exponent without end", "[1e999999999]", "[10e999999998]"),
    ("true", "true", True),
    ("false and space", " false\n", False),
    ("null", "null", None),
    # JSON text in JSON text
    ("encoded twice", doubly({"a": 1}, 1), {"a": 1}),
    ("encoded four times", doubly({"a": 1}, 3), {"a": 1}),
    ("key that stands twice in text", '{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}),
    ("encoded string", '"hello"', "hello"),
    ("encoded word", '"null"', None),
    # what only Python writes and reads
    ("NaN", math.nan, float("nan")),
    ("NaN in text", '{"a": [NaN, -Infinity], "b": {}}', {"b": {}, "a": [math.nan, -math.inf]}),
    ("NaN as text", "NaN", math.nan),
    ("infinity as text", "Infinity", math.inf),
    ("NaN of a Decimal", decimal.Decimal("NaN"), math.nan),
    ("infinity of a Decimal", decimal.Decimal("-Infinity"), -math.inf),
    ("lone surrogate", '{"a": "\\ud800"}', {"a": "\ud800"}),
    ("lone surrogate, raw", '{"a":\t"\ud800"}', {"a": "\ud800"}),
    ("lone surrogate, encoded", '"\\ud800"', "\ud800"),
    ("lone surrogate as key", {"\ud800": 1, "b": 2.0}, {"b": 2, "\ud800": 1}),
    # Unicode
    ("NFC", {"q": "e\u0301"}, {"q": "é"}),
    ("NFC in text", '{"q": "e\\u0301"}', {"q": "é"}),
    ("NFC of keys", {"e\u0301": 1, "z": 2}, {"é": 1, "z": 2}),
    ("NFC of keys, other order", {"e\u0301": 1, "f": 2}, {"f": 2, "é": 1}),
    ("keys that NFC makes equal", {"é": 1, "e\u0301": 2}, {"e\u0301": 2, "é": 1}),
    ("beyond the BMP", '{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    # containers
    ("tuple and list", (1, 2), [1, 2]),
    ("named tuple and list", Pair(1, 2), [1, 2]),
    ("deque and list", collections.deque([1, 2]), [1, 2]),
    ("list subclass", Row([1, 2]), [1, 2]),
    ("dict subclass", Table(a=1), {"a": 1}),
    ("mapping", Mirror(a=1), {"a": 1}),
    ("mapping proxy", types.MappingProxyType({"a": 1.0}), {"a": 1}),
    ("dict values", {"a": 1}.values(), [1]),
    ("order of a set", {"a", "b", 1}, {1, "b", "a"}),
    ("set and frozenset", {1, 2}, frozenset([2, 1])),
    ("set of sets", {frozenset([1]), frozenset([2])}, {frozenset([2]), frozenset([1])}),
    ("set of floats", {1.0, None}, {None, 1}),
    ("set and keys", {"a"}, {"a": 1}.keys()),
    ("empty containers", [{}, [], ()], [{}, [], []]),
    ("keys of any type", {1: "a", None: "b", (1,): "c"}, {(1,): "c", None: "b", 1.0: "a"}),
    ("keys 1 and text", {1: "a", "1": "b"}, {"1": "b", 1: "a"}),
    ("range", range(0, 10, 3), range(0, 12, 3)),
    ("empty range", range(0), range(5, 1)),
    # subclasses of scalars
    ("string subclass", Text("a"), "a"),
    ("string subclass inside", [Text("a")], ["a"]),
    ("string subclass that is JSON", Text('{"a":1}'), {"a": 1}),
    ("string subclass as key", {Text("b"): 1.0, "a": 1}, {"b": 1, "a": 1}),
    ("user string", collections.UserString("a"), "a"),
    ("string enum", {"a": Word.YES}, {"a": "yes"}),
    ("string enum as key", {Word.YES: 1}, {"yes": 1.0}),
    ("int subclass", Whole(3), 3),
    ("bytes subclass", Octets(b"a"), b"a"),
    ("bytearray", bytearray(b"ab"), b"ab"),
    ("memory view", memoryview(b"abcd")[::2], b"ac"),
    # numbers
    ("Decimal", decimal.Decimal("1.50"), 1.5),
    ("integral Decimal", decimal.Decimal("1E+2"), 100),
    ("Decimal and JSON text", decimal.Decimal("0.1"), "0.1"),
    ("Fraction", fractions.Fraction(1, 2), 0.5),
    ("integral Fraction", fractions.Fraction(4, 2), 2),
    ("long integral Fraction", fractions.Fraction(2**64 + 1), 2**64 + 1),
    ("real number of another class", Half(), 0.5),
    ("complex", complex(1, 0), complex(1, -0.0)),
    # time and other standard types
    ("one instant", datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 13, tzinfo=BERLIN)),
    ("first instant", datetime(1, 1, 1, tzinfo=BERLIN), datetime(1, 1, 1, tzinfo=BERLIN)),
    ("naive time", datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 12)),  # noqa: DTZ001
    ("date", date(2024, 1, 1), date(2024, 1, 1)),
    ("time of day", time(1, 2, tzinfo=UTC), time(1, 2, tzinfo=UTC)),
    ("duration", timedelta(hours=24), timedelta(days=1)),
    ("UUID", uuid.UUID(int=1), uuid.UUID("00000000-0000-0000-0000-000000000001")),
    ("UUID made safely", uuid.UUID(int=1), uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe)),
    ("path", Path("a") / "b", PurePosixPath("a/b")),
    ("enum", [Colour.RED], [Colour.RED]),
    ("enum of odd values", Odd.FUNCTION, Odd.FUNCTION),
    ("flags", Bit.A | Bit.B, Bit.B | Bit.A),
    ("exception", ValueError("a", 1), ValueError("a", 1.0)),
    ("class", int, int),
    ("module", json, json),
    ("function", len, len),
    # objects
    ("dataclass", Left(1), Left(1.0)),
    ("dataclass with slots", Slotted(1), Slotted(1)),
    ("pydantic", Model(), Model(name="x", tags=[])),
    ("pydantic inside", {"m": [Model(tags=["a"])]}, {"m": (Model(tags=["a"]),)}),
    ("msgspec", Record(), Record("x", 1)),
    ("private slot", Private(1), Private(1)),
    ("slot named by a string", OneSlot(1), OneSlot(1)),
    ("object without state", Empty(), Empty()),
    ("own repr", Named("a"), Named("a")),
    ("own pickled form", Pickled(1), Pickled(1)),
    ("own state", element("1"), element("1")),
    ("pickled by name", Pickled("name"), Pickled("name")),
    ("namespace", types.SimpleNamespace(a=1), types.SimpleNamespace(a=1)),
    ("partial", functools.partial(len, [1]), functools.partial(len, (1,))),
    # shape
    ("deep list", nested(3000, lambda v: [v]), nested(3000, lambda v: (v,))),
    ("deep dict", nested(3000, lambda v: {"a": v}), nested(3000, lambda v: {"a": v}, 1.0)),
    ("deep text", "[" * 3000 + "1" + "]" * 3000, nested(3000, lambda v: [v])),
    ("deep text of objects", '{"a":' * 3000 + "1 " + "}" * 3000, nested(3000, lambda v: {"a": v})),
    ("circular", circular(), circular()),
    ("circular object", ring(), ring()),
]

DIFFERENT: list[tuple[str, object, object]] = [
    ("values", {"a": 1}, {"a": 2}),
    ("keys", {"a": 1}, {"b": 1}),
    ("order of a list", [1, 2], [2, 1]),
    ("nesting", [[1], 2], [[1, 2]]),
    ("absent and null", {}, {"a": None}),
    ("true and 1", True, 1),
    ("false and 0", {"a": False}, {"a": 0}),
    ("true and its name", {"a": True}, {"a": "true"}),
    ("number and string", {"a": 1}, {"a": "1"}),
    ("null and empty", None, ""),
    ("space in a string", {"a": "x y"}, {"a": "x  y"}),
    ("space in text that is no JSON", "x y", "x y "),
    ("case", {"a": "x"}, {"a": "X"}),
    ("neighbouring integers", 2**53, 2**53 + 1),
    ("neighbouring integers in text", "[9007199254740992]", "[9007199254740993]"),
    ("neighbouring long integers", f"[{NINES}]", f"[{NINES[:-1]}8]"),
    ("long fractions", f"[{NINES}.5]", f"[{NINES}.25]"),
    ("neighbouring powers of ten", "1e999999999", "1e999999998"),
    ("signs of infinity", [math.inf], [-math.inf]),
    ("infinity and a large number", [math.inf], "[1e999]"),
    ("NaN and null", [math.nan], [None]),
    ("NaN and its name", [math.nan], ["NaN"]),
    ("string and its JSON inside", {"a": '{"b": 1}'}, {"a": {"b": 1}}),
    ("encoded too often", doubly({"a": 1}, 9), {"a": 1}),
    ("JSON and nearly JSON", "[1, 2]", "[1, 2"),
    ("trailing text", "[1] x", "[1]"),
    ("trailing comma", "[NaN, ]", "[NaN]"),
    ("member without a colon", '{"a": NaN, "b"; 1}', '{"a": NaN, "b": 1}'),
    ("key that is no string", '{"a": NaN, 1: 1}', {"a": math.nan, 1: 1}),
    ("brackets that do not match", "[NaN}", "[NaN]"),
    ("more than one value", "[NaN] 1", "[NaN]"),
    ("surrogates", ["\ud800"], ["\ud801"]),
    ("surrogate and its escape", ["\ud800"], ["\\ud800"]),
    ("keys that NFC makes equal", {"é": 1, "e\u0301": 2}, {"é": 1}),
    ("values of keys that NFC makes equal", {"é": 1, "e\u0301": 2}, {"é": 1, "e\u0301": 3}),
    ("keys of two types", {1: "a"}, {"1": "a"}),
    ("keys true and 1", {True: "a"}, {1: "a"}),
    ("list and dict", [], {}),
    ("set and list", {1}, [1]),
    ("bytes and text", b"a", "a"),
    ("bytes and base64", b"a", "YQ=="),
    ("lengths of bytes", [b"a", b"b"], [b'a,@"bytes"0:b']),
    ("date and text", date(2024, 1, 1), "2024-01-01"),
    ("date and time", date(2024, 1, 1), datetime(2024, 1, 1)),  # noqa: DTZ001
    ("naive and aware", datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
    ("instants", datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=BERLIN)),
    ("UUID and text", uuid.UUID(int=1), str(uuid.UUID(int=1))),
    ("path and text", Path("a"), "a"),
    ("Decimals", decimal.Decimal("1.5"), decimal.Decimal("1.25")),
    ("ranges", range(3), range(4)),
    ("steps of ranges", range(0, 10, 3), range(0, 10, 9)),
    ("range and list", range(3), [0, 1, 2]),
    ("enum and value", Colour.RED, "red"),
    ("enums", Colour.RED, Colour.BLUE),
    ("enums of two classes", Colour.RED, Shade.RED),
    ("flags", Bit.A | Bit.B, Bit.A | Bit.C),
    ("exceptions", ValueError("a"), ValueError("b")),
    ("exceptions of two classes", ValueError("a"), TypeError("a")),
    ("functions", len, repr),
    ("dataclasses", Left(1), Left(2)),
    ("dataclasses of two classes", Left(1), Right(1)),
    ("dataclass and dict", Left(1), {"size": 1}),
    ("dataclasses with slots", Slotted(1), Slotted(2)),
    ("models", Model(), Model(name="y")),
    ("structs", Record(), Record("y")),
    ("private slots", Private(1), Private(2)),
    ("slots named by a string", OneSlot(1), OneSlot(2)),
    ("objects of two classes", Empty(), Other()),
    ("own repr", Named("a"), Named("b")),
    ("own pickled forms", Pickled(1), Pickled(2)),
    ("own states", element("1"), element("2")),
    ("no pickled form", Pickled("raise"), Pickled("name")),
    ("depth", nested(3000, lambda v: [v]), nested(3001, lambda v: [v])),
    ("core of a deep list", nested(3000, lambda v: [v], 1), nested(3000, lambda v: [v], 2)),
    ("circular values", circular(1), circular(2)),
]


@pytest.mark.parametrize(("_", "one", "other"), EQUAL, ids=[name for name, *_ in EQUAL])
def test_equal_values_have_one_text(_: str, one: object, other: object) -> None:
    assert isinstance(canonical(one), bytes)
    assert canonical(one) == canonical(other)
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(("_", "one", "other"), DIFFERENT, ids=[name for name, *_ in DIFFERENT])
def test_different_values_have_different_texts(_: str, one: object, other: object) -> None:
    assert isinstance(canonical(one), bytes)
    assert isinstance(canonical(other), bytes)
    assert canonical(one) != canonical(other)
    assert fingerprint(one) != fingerprint(other)


def test_the_text_of_a_value_is_json_in_its_shortest_form() -> None:
    value = {"b": [1.0, -0.0, 1e21, 1.5e-7, "é\n", True], "a": {"\U0001f600": 1, "\uffff": None}}
    expected = (
        '{"a":{"\uffff":null,"\U0001f600":1},"b":[1,0,1000000000000000000000,1.5e-7,"é\\n",true]}'
    )

    assert canonical(value) == expected.encode()
    assert canonical(json.dumps(value)) == expected.encode()
    assert canonical("[10e999999998]") == b"[1e999999999]"


def test_a_value_that_the_dataclass_caches_is_no_part_of_it() -> None:
    read = Left(1)

    assert read.doubled == 2
    assert fingerprint(read) == fingerprint(Left(1))
