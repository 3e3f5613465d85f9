"""Which answers are that there is nothing, and which requests are the same one: one fact a row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.values.answers import found_nothing, nearly_equal
from otel_loopguard.values.volatile import Masking


def text_of(value: object) -> bytes:
    text = canonical(value)
    assert text is not UNKNOWN
    return text


NOTHING: list[object] = [
    [],
    {},
    {"results": []},
    {"results": {}, "total": 0, "query": "x", "page": 1},
    {"count": 0},
    {"totalHits": 0, "took": 5, "error": None, "has_more": False, "next": ""},
    {"items": [], "nextCursor": None, "status": "ok"},
    {"results": [], "owner": None, "cached": False, "note": ""},
    {"message": "No results found"},
    {"result": "[]"},
    [{"type": "text", "text": "No results found."}],
    [{"type": "text", "text": "[]"}],
    "No results found for x",
    "no results",
    "No matches",
    "No matching documents were found.",
    "No data available",
    "not found",
    "Not found: C-78",
    "user 5 not found",
    "Order C-78 was not found!",
    "0 matches",
    "0 results for x",
    "(0 rows)",
    "found 0 results",
    "The search returned no results.",
    "There are no orders for this user",
    "Sorry, I couldn't find any flights",
    "We could not find that page",
    "nothing found",
    "Nothing was found for x",
    "none found",
    "zero hits",
    "empty list",
    "(empty)",
    json.dumps({"results": []}),
]

SOMETHING: list[object] = [
    "",
    None,
    0,
    False,
    "ok",
    "done",
    "updated",
    "None",
    "3 results",
    "10 matches",
    "no",
    "no output",
    "no such file",
    "No such file or directory",
    "Error: not found",
    "failed: page not found",
    "No issues found",
    "No errors",
    "0 errors, 0 warnings",
    "No files changed",
    "0 rows affected",
    "No data yet",
    "No results found yet",
    "No results, still running",
    "nothing to commit",
    "Notes",
    "non-empty list",
    "No results found. " + "But see this. " * 20,
    [1],
    [[]],
    [{}],
    [{"type": "text", "text": "found it"}],
    [{"type": "text", "text": "[]"}, {"type": "text", "text": "more"}],
    {"success": True},
    {"status": "ok"},
    {"progress": 0},
    {"count": 1},
    {"count": False},
    {"errors": []},
    {"violations": [], "count": 0},
    {"results": [], "name": "x"},
    {"results": [], "query": {"a": 1}},
    {"results": [1]},
    {"a": {"b": {}}},
    [{"text": json.dumps([{"text": json.dumps([{"text": "[]"}])}])}],
]


@pytest.mark.parametrize("value", NOTHING, ids=repr)
def test_an_answer_of_nothing(value: object) -> None:
    assert found_nothing(text_of(value))


@pytest.mark.parametrize("value", SOMETHING, ids=lambda value: repr(value)[:40])
def test_any_other_answer(value: object) -> None:
    assert not found_nothing(text_of(value))


@pytest.mark.parametrize("text", [b"", b'"', b"[", b"{", b'"not found', b'"\xff"', b"[" * 150])
def test_what_is_no_canonical_text_is_no_answer_of_nothing(text: bytes) -> None:
    assert not found_nothing(text)


def test_a_long_text_is_no_answer_of_nothing() -> None:
    short, long = (text_of("No results found for " + "x" * letters) for letters in (177, 178))

    assert (len(short), len(long)) == (200, 201)
    assert found_nothing(short)
    assert not found_nothing(long)


@pytest.mark.parametrize(
    ("value", "layers"), [({"result": "[]"}, 2), ([{"text": "[]"}], 1), ({"a": ["b"]}, 0)]
)
def test_nothing_is_looked_for_three_layers_deep(value: object, layers: int) -> None:
    values = [value]
    for _ in range(4):
        values.append({"result": json.dumps(values[-1])})
    answers = [found_nothing(json.dumps(value).encode()) for value in values]

    assert answers == [True] * layers + [False] * (5 - layers)


UUIDS = ("550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8")
PARIS = "paris weather report for the summer season in the city centre"
PROSE = " ".join(f"{first}{second}" for first in "abcdef" for second in "qrstuvwxyz")
MADE = ("req-000000-9f00000", "req-000001-9f07919")
TIMES = ("2026-11-29T20:00:00Z", "2026-11-29T20:00:01Z")

SAME: list[tuple[str, Any, Any]] = [
    ("spaces", {"query": "paris weather"}, {"query": " paris  weather"}),
    ("case", {"query": "Paris"}, {"query": "paris "}),
    ("order of words", {"query": "weather paris"}, {"query": "paris weather"}),
    ("fillers", {"query": "weather paris"}, {"query": "what is the weather in paris"}),
    ("one word more", {"query": "paris weather"}, {"query": "current weather in paris"}),
    ("punctuation", {"query": "weather in paris?"}, {"query": "weather, in paris"}),
    ("a growing query", {"query": PARIS}, {"query": f"{PARIS} w0 w1"}),
    ("a year added", {"query": "weather paris"}, {"query": "weather paris 2021"}),
    ("other members equal", {"q": "paris weather", "n": 5}, {"q": "weather paris", "n": 5}),
    ("nested", {"a": [{"q": "x y z"}]}, {"a": [{"q": "y x z"}]}),
    ("text alone", "paris weather", "weather in paris"),
    ("time", {"at": TIMES[0]}, {"at": TIMES[1]}),
    ("uuid in text", {"q": f"find it {UUIDS[0]}"}, {"q": f"find it {UUIDS[1]}"}),
    (
        "request id",
        {"order": "C-78", "request_id": MADE[0], "timestamp": TIMES[0]},
        {"order": "C-78", "request_id": MADE[1], "timestamp": TIMES[1]},
    ),
    ("uuid of a request", {"n": 1, "nonce": UUIDS[0]}, {"n": 1, "nonce": UUIDS[1]}),
    ("first moment", {"n": 1, "nonce": 1_000_000_000}, {"n": 1, "nonce": 1_000_000_001}),
    ("other words", {"q": "alpha beta gamma delta"}, {"q": "gamma epsilon alpha beta"}),
    ("two words in turn", {"q": "alpha beta gamma delta"}, {"q": "alpha gamma beta epsilon"}),
    ("a word further on", {"q": "alpha beta delta gamma"}, {"q": "alpha beta gamma epsilon"}),
    ("fewer words", {"q": "a1 hotel near b2 station"}, {"q": "b2 station hotel by a1 near"}),
    ("as many words", {"q": PROSE}, {"q": " ".join(reversed(PROSE.split()))}),
    (
        "words beside equal lines",
        {"q": "paris weather", "c": "a\nb"},
        {"q": "weather paris", "c": "a\nb"},
    ),
    ("moment", {"q": "a b", "timestamp": 1770000000}, {"q": "a b", "timestamp": 1770000001}),
    ("moment beside a path", {"p": "/a", "timestamp": 2e9}, {"p": "/a", "timestamp": 2.1e9}),
]

OTHER: list[tuple[str, Any, Any]] = [
    ("id", {"id": 1}, {"id": 2}),
    ("page", {"q": "paris weather", "page": 1}, {"q": "paris weather", "page": 2}),
    ("path", {"path": "a.py", "content": "x y z"}, {"path": "b.py", "content": "x y z"}),
    ("single word", {"q": "paris"}, {"q": "rome"}),
    ("single word and more", {"q": "paris"}, {"q": "paris weather"}),
    ("uuid", {"id": UUIDS[0]}, {"id": UUIDS[1]}),
    ("keys", {"q": "paris weather"}, {"query": "paris weather"}),
    ("more keys", {"q": "a b c"}, {"q": "a b c", "n": 1}),
    ("keys below", {"a": {"q": "a b c"}}, {"a": {"p": "a b c"}}),
    ("length of a list", {"a": ["x"]}, {"a": ["x", "x"]}),
    ("item of a list", {"a": ["x"]}, {"a": ["y"]}),
    ("one item of two", {"a": ["x", "y"]}, {"a": ["x", "z"]}),
    ("one member of two", {"a": {"q": "a b", "n": 1}}, {"a": {"q": "a b", "n": 2}}),
    ("a single word and a filler", {"q": "paris"}, {"q": "in paris"}),
    ("a word more than prose", {"q": PROSE}, {"q": f"{PROSE} more"}),
    ("another word and one more", {"q": "a1 b1 c1 d1 now"}, {"q": "a1 b1 c1 d1 then or so"}),
    ("number in other words", {"q": "read chapter 1 of it"}, {"q": "of it read chapter 2"}),
    ("moment that is none", {"n": 1, "nonce": 999_999_999}, {"n": 1, "nonce": 1_000_000_001}),
    ("nonce of another type", {"n": 1, "nonce": None}, {"n": 1, "nonce": [1]}),
    ("type", {"a": "1 2"}, {"a": 12}),
    ("true and one", {"a": True}, {"a": 1}),
    ("nothing in common", {"q": "paris weather"}, {"q": "rome hotels"}),
    ("too little in common", {"q": "paris weather"}, {"q": "paris hotels"}),
    ("half in common", {"q": "paris weather"}, {"q": "paris weather hotels museums"}),
    ("made and not made", {"q": "a b", "nonce": MADE[0]}, {"q": "a b", "nonce": "x"}),
    ("number in words", {"q": "read chapter 1 of it"}, {"q": "read chapter 2 of it"}),
    ("file in words", {"q": "pytest -q -x a.py"}, {"q": "pytest -q -x b.py"}),
    ("path in words", {"q": "please list all of /a"}, {"q": "please list all of /b"}),
    ("option in words", {"q": "ls the dir now"}, {"q": "ls the dir now -a"}),
    ("address in words", {"q": "write to a@x.org now"}, {"q": "write to b@x.org now"}),
    (
        "other words at the same places",
        {"q": "weather forecast in paris for tomorrow morning"},
        {"q": "weather forecast in rome for tomorrow morning"},
    ),
    ("lines", {"c": "a b c d\ne f g h"}, {"c": "a b c d\ne f g h i"}),
    ("indentation", {"c": "if a:\n  b\n  c"}, {"c": "if a:\n  b\nc"}),
    ("long text", {"c": "word " * 61}, {"c": "word " * 61 + "and more"}),
    ("very long text", {"c": "a " * 1000}, {"c": " " + "a " * 1000}),
    ("request id alone", {"request_id": MADE[0]}, {"request_id": MADE[1]}),
    (
        "request id that is what is decided",
        {"decision": "yes", "request_id": MADE[0]},
        {"decision": "yes", "request_id": MADE[1]},
    ),
    ("short request id", {"q": "a b", "request_id": 1}, {"q": "a b", "request_id": 2}),
    (
        "request id of a person's making",
        {"q": "a b", "request_id": "REQ-2024-0017"},
        {"q": "a b", "request_id": "REQ-2024-0018"},
    ),
    ("message id", {"q": "a b", "message_id": MADE[0]}, {"q": "a b", "message_id": MADE[1]}),
    ("numbers", 1, 2),
    ("null", None, 1),
]


def rows(table: list[tuple[str, Any, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("one", "other"), [pytest.param(one, other, id=name) for name, one, other in table]
    )


@rows(SAME)
def test_requests_for_the_same_thing(one: object, other: object) -> None:
    assert text_of(one) != text_of(other)
    assert nearly_equal(text_of(one), text_of(other))
    assert nearly_equal(text_of(other), text_of(one))


@rows(OTHER)
def test_requests_for_another_thing(one: object, other: object) -> None:
    assert not nearly_equal(text_of(one), text_of(other))
    assert not nearly_equal(text_of(other), text_of(one))


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":', b"\xff", b'{"a":' * 300, b'@"set"[1]'])
def test_what_cannot_be_read_equals_itself_only(text: bytes) -> None:
    assert nearly_equal(text, text)
    assert not nearly_equal(text, text + b" ")
    assert not nearly_equal(text, b"{}")


def test_two_thousand_bytes_are_compared_by_their_parts() -> None:
    short, one, other = (b'{"q":"paris weather%s"}' % (b" " * spaces) for spaces in (0, 1979, 1980))

    assert (len(one), len(other)) == (2000, 2001)
    assert nearly_equal(short, one)
    assert nearly_equal(one, short)
    assert not nearly_equal(short, other)
    assert not nearly_equal(other, short)


def test_what_is_deeper_than_python_goes_is_not_compared() -> None:
    one, other = (b"[" * 990 + number + b"]" * 990 for number in (b"1", b"2"))

    assert not nearly_equal(one, other)


def test_long_equal_texts_are_equal() -> None:
    assert nearly_equal(text_of("x" * 5000), text_of("x" * 5000))


def test_the_masking_in_force_counts() -> None:
    one, other = text_of({"q": "a-5"}), text_of({"q": "a-6"})

    assert not nearly_equal(one, other)
    assert nearly_equal(one, other, Masking(patterns=("a-[0-9]",)))
    assert not nearly_equal(
        text_of({"at": TIMES[0]}), text_of({"at": TIMES[1]}), Masking(enabled=False)
    )
