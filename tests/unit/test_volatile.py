"""What is volatile in results and arguments, and what is not: one fact a row."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.values._volatile_parts import moments_in
from otel_loopguard.values.volatile import (
    DURATION_KEYS,
    DURATION_UNITS,
    IDENTIFIER_KEYS,
    MOMENT_KEYS,
    Masking,
)

UUID = "550e8400-e29b-41d4-a716-446655440000"
OTHER_UUID = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"
SHA1 = "356a192b7913b04c54574d18c28d46e6395428ab"
OTHER_SHA1 = "da4b9237bacccdf19c0760cab7aec4a8359010b0"


def text_of(value: object) -> bytes:
    text = canonical(value)
    assert text is not UNKNOWN
    return text


def result(value: object, masking: Masking | None = None) -> str:
    return (masking or Masking()).masked_result(text_of(value)).decode()


def arguments(value: object) -> str:
    return Masking().masked_arguments(text_of(value)).decode()


def wrapped(value: object) -> list[dict[str, str]]:
    """Return a result as an MCP server writes it."""
    return [{"type": "text", "text": json.dumps(value)}]


RUN: dict[str, Any] = {"status": "completed", "exitCode": 0, "text": "a b"}

EQUAL_RESULTS: list[tuple[str, object, object]] = [
    ("uuid", f"run {UUID} done", f"run {OTHER_UUID} done"),
    ("uuid alone", UUID, OTHER_UUID),
    ("address", "<A object at 0x7f31c0>", "<A object at 0x7f99ABCDEF>"),
    ("date and time", "at 2026-11-29 20:00:00", "at 2026-11-29 20:00:01"),
    ("ISO time", "2026-11-29T20:00:00Z", "2026-11-30T01:02:03.123456+01:00"),
    ("ISO time with a comma", "2026-11-29T20:00:00,123 x", "2026-11-29T20:00:00,124 x"),
    ("slashes", "[2026/11/29 20:00] x", "[2026/11/29 20:01] x"),
    ("day first", "29.11.2026 20:00:00", "29.11.2026 20:00:01"),
    ("American", "08/19/2024 8:15:02 PM", "08/19/2024 8:15:24 PM"),
    ("RFC 2822", "Sun, 29 Nov 2026 20:00:00 +0000", "Sun, 29 Nov 2026 21:00:00 +0000"),
    ("access log", "[29/Nov/2026:20:00:00 +0000] GET", "[29/Nov/2026:20:00:07 +0000] GET"),
    ("syslog", "Nov 29 20:00:00 host up", "Nov 29 20:01:00 host up"),
    ("ls", "Nov 29 20:00 a.py", "Nov 29 20:01 a.py"),
    ("clock", "20:00:00 ready", "20:00:01 ready"),
    ("compact", "log_x 20261129T200000Z", "log_x 20261129T200001Z"),
    ("after a line break", "a\n20:00:00 b", "a\n20:00:01 b"),
    ("after a tab", "a\t5 ms", "a\t6 ms"),
    ("after quotes", 'say "20:00:00"', 'say "20:00:01"'),
    ("between non-ASCII", "é 20:00:00 日本", "é 20:00:01 日本"),
    ("seconds since 1970", 1770000000, 1770000009),
    ("milliseconds since 1970", "at 1770000000000", "at 1770000009000"),
    ("microseconds since 1970", "at 1770000000000000", "at 1770000009000000"),
    ("nanoseconds since 1970", "at 1770000000000000000", "at 1770000009000000000"),
    ("seconds with a fraction", "done (1770000000.25)", "done (1770000001.5)"),
    ("seconds by their key", {"modified": 1600000000}, {"modified": 1600000001}),
    ("seconds in text by their key", {"lastSeenAt": "1600000000"}, {"lastSeenAt": "1600000009"}),
    ("duration", "1 failed in 1.013s", "1 failed in 1.026s"),
    ("duration with a space", "took 12 ms", "took 1,213 ms"),
    ("duration in words", "took 3 seconds", "took 1 second"),
    ("microseconds", "took 3 µs", "took 4.5 \u03bcs"),
    ("mixed duration", "in 1m30s", "in 2m5s"),
    ("long duration", "in 1 hour and 3 minutes", "in 2 hours and 1 minute"),
    ("a command's answer", {**RUN, "durationMs": 30, "pid": 4}, {**RUN, "durationMs": 1, "pid": 5}),
    ("moment by key", {"startedAt": 17}, {"startedAt": 18}),
    ("number and text", {"elapsed": 1.5e-3}, {"elapsed": "0:01"}),
    ("negative number", {"elapsed": -1}, {"elapsed": 1}),
    ("spelling of a key", {"request-id": "a", "TraceId": 1}, {"request-id": "b", "TraceId": 2}),
    ("text with quotes", {"nonce": 'a"b', "x": 1}, {"nonce": 'c"\\', "x": 1}),
    ("nested", {"a": [{"b": {"pid": 1}}]}, {"a": [{"b": {"pid": 2}}]}),
    ("JSON in text", wrapped({"pid": 1, "a": 2}), wrapped({"pid": 9, "a": 2})),
    ("text in JSON in text", wrapped({"request_id": "a"}), wrapped({"request_id": "b"})),
    ("Python in text", "{'pid': 1, 'msg_id': 'a'} .", "{'pid': 2, 'msg_id': 'b'} ."),
]

DIFFERENT_RESULTS: list[tuple[str, object, object]] = [
    ("progress", {"progress": 5, "eta": 100}, {"progress": 10, "eta": 95}),
    ("count", {"count": 1}, {"count": 2}),
    ("page", {"page": 1}, {"page": 2}),
    ("id", {"id": 17}, {"id": 18}),
    ("id as large as a moment", {"id": 1770000000}, {"id": 1770000001}),
    ("ids as large as a moment", {"ids": [1770000000]}, {"ids": [1770000001]}),
    ("order", "order C-78", "order C-79"),
    ("tests", "7 failed, 20 passed", "6 failed, 21 passed"),
    ("line", "a.py:10:22: E501", "a.py:10:23: E501"),
    ("version", "v1.2.3", "v1.2.4"),
    ("price", "$12.50", "$12.51"),
    ("bytes", "copied 1770000000 bytes", "copied 1780000000 bytes"),
    ("part of a whole", "1770000000/1790000000", "1780000000/1790000000"),
    ("date", "next free day: 2026-12-01", "next free day: 2026-12-02"),
    ("time to the minute", "free: 10:30", "free: 11:30"),
    ("decade", "music of the 1980s", "music of the 1990s"),
    ("distance", "5 m", "6 m"),
    ("days", "in 3 days", "in 2 days"),
    ("percent done", "elapsed 12s, 40% done", "elapsed 14s, 50% done"),
    ("time remaining", "downloading, 30s remaining", "downloading, 20s remaining"),
    ("time left", "30s left", "20s left"),
    ("ETA", "ETA: 30s", "ETA: 20s"),
    ("a value that came", {"finishedAt": None}, {"finishedAt": 1770000000}),
    ("a flag under a volatile key", {"pid": True}, {"pid": False}),
    ("more than a time of day", "frame 1:10:20:30", "frame 1:10:20:31"),
    ("number as large as an early moment", "item 1650000000", "item 1650000001"),
    ("hardware address", "00:11:22:33:44:55", "00:11:22:33:44:56"),
    ("commit", f"HEAD is {SHA1}", f"HEAD is {OTHER_SHA1}"),
    ("hexadecimal digits too few", "0x1f", "0x2f"),
    ("kinds", UUID, "2026-11-29T20:00:00Z"),
    ("name with digits", "mod5s", "mod6s"),
    ("kibibytes", "5 MB in file5m", "6 MB in file5m"),
    ("cursor", {"next_cursor": "a"}, {"next_cursor": "b"}),
    ("status", {"status": "queued"}, {"status": "running"}),
    ("a value beside a volatile one", {"pid": 1, "page": 1}, {"pid": 1, "page": 2}),
]

EQUAL_ARGUMENTS: list[tuple[str, object, object]] = [
    ("time", {"at": "2026-11-29T20:00:00Z"}, {"at": "2026-11-29T20:00:01Z"}),
    ("time in text", {"q": "now 20:00:00"}, {"q": "now 20:00:01"}),
    ("uuid in text", {"q": f"find it {UUID}"}, {"q": f"find it {OTHER_UUID}"}),
    ("hash in text", {"q": f"find {SHA1} now"}, {"q": f"find {OTHER_SHA1} now"}),
    ("address in text", {"q": "at 0x7f31c0 it"}, {"q": "at 0x7f31c1 it"}),
]

DIFFERENT_ARGUMENTS: list[tuple[str, object, object]] = [
    ("uuid", {"id": UUID}, {"id": OTHER_UUID}),
    ("uuid alone", UUID, OTHER_UUID),
    ("uuids in a list", [UUID], [OTHER_UUID]),
    (
        "uuid in JSON in text",
        {"body": wrapped({"id": UUID})},
        {"body": wrapped({"id": OTHER_UUID})},
    ),
    ("uuid in a path", {"url": f"/users/{UUID}"}, {"url": f"/users/{OTHER_UUID}"}),
    ("uuid in a file name", f"rm {UUID}.json", f"rm {OTHER_UUID}.json"),
    ("hash", {"commit": SHA1}, {"commit": OTHER_SHA1}),
    ("number", {"since": 1770000000}, {"since": 1770000001}),
    ("key", {"pid": 1}, {"pid": 2}),
    ("duration", {"wait": "5s"}, {"wait": "10s"}),
    ("date", {"day": "2026-11-29"}, {"day": "2026-11-30"}),
    ("appointment", {"from": "2026-11-29 10:00"}, {"from": "2026-11-29 10:30"}),
    ("request id", {"request_id": "req-1"}, {"request_id": "req-2"}),
]


def rows(table: list[tuple[str, object, object]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("one", "other"), [pytest.param(one, other, id=name) for name, one, other in table]
    )


@rows(EQUAL_RESULTS)
def test_what_is_volatile_makes_no_difference_between_results(one: object, other: object) -> None:
    assert text_of(one) != text_of(other)
    assert result(one) == result(other)


@rows(DIFFERENT_RESULTS)
def test_what_may_be_news_stays(one: object, other: object) -> None:
    assert result(one) != result(other)


@rows(EQUAL_ARGUMENTS)
def test_what_is_volatile_makes_no_difference_between_arguments(one: object, other: object) -> None:
    assert text_of(one) != text_of(other)
    assert arguments(one) == arguments(other)


@rows(DIFFERENT_ARGUMENTS)
def test_what_says_what_is_asked_for_stays(one: object, other: object) -> None:
    assert arguments(one) != arguments(other)


KEYS = [
    *(key + unit for key in DURATION_KEYS for unit in ("", *DURATION_UNITS)),
    *MOMENT_KEYS,
    *IDENTIFIER_KEYS,
]


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_list_is_masked(key: str) -> None:
    first, *others = key.split("_")
    camel = first + "".join(map(str.title, others))

    for spelling in (key, camel, key.upper(), key.replace("_", "-")):
        assert result({spelling: 7}) == f'{{"{spelling}":<volatile>}}'


def test_marks_name_their_kind() -> None:
    shown = result(f"20:00:00 5 ms {UUID} 0x7f31c0")

    assert shown == '"<time> <duration> <uuid> <address>"'
    assert arguments(f"x {SHA1}") == '"x <hash>"'


def test_what_looks_like_a_key_in_a_masked_value_is_masked_with_it() -> None:
    assert result({"nonce": "'pid': 5", "ts": 1}) == '{"nonce":<volatile>,"ts":<volatile>}'


def test_it_can_be_switched_off() -> None:
    masking = Masking(enabled=False, keys=("a",), patterns=("b",))
    text = text_of({"a": 1, "pid": 2, "text": "b 20:00:00"})

    assert masking.masked_result(text) == text
    assert masking.masked_arguments(text) == text


def test_further_keys_are_masked_in_results_only() -> None:
    masking = Masking(keys=("Build-No", "a.b"))
    text = text_of({"build_no": 5, "A.B": "x", "pid": 1})

    assert (
        masking.masked_result(text) == b'{"A.B":<volatile>,"build_no":<volatile>,"pid":<volatile>}'
    )
    assert masking.masked_arguments(text) == text


def test_further_patterns_are_masked_everywhere() -> None:
    masking = Masking(patterns=(r"port [0-9]+", r"größe=\w+"))
    text = text_of("port 80, größe=ü 20:00:00 port 9")

    assert masking.masked_result(text).decode() == '"<masked>, <masked> <time> <masked>"'
    assert masking.masked_arguments(text).decode() == '"<masked>, <masked> <time> <masked>"'


def test_an_empty_match_masks_nothing() -> None:
    assert Masking(patterns=("x*",)).masked_result(b'"axb"') == b'"a<masked>b"'


def test_octets_that_are_no_text_are_no_obstacle() -> None:
    masking = Masking(patterns=("a",))

    assert masking.masked_result(text_of(b"\xff a")) == b'@"bytes"3:\xff <masked>'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patterns": ("(",)}, r"masking\.patterns: '\(' is no regular expression"),
        ({"keys": ("",)}, r"masking\.keys: '' is no key"),
        ({"keys": ("a b",)}, r"masking\.keys: 'a b' is no key; expected a letter"),
    ],
)
def test_a_mistake_fails_at_construction(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Masking(**options)


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            b"1",
            b"-",
            b"f",
            b"1,",
            b"1.",
            b"1:",
            b"17",
            b"0x",
            b"1h",
            b"1h2m",
            b'"',
            b"'",
            b" ",
            b"\\",
        ),
        *(
            b"17000000",
            b"1-",
            b"ffffffff-",
            b"20:00:0",
            b"2026-11-29 ",
            b'"pid":',
            b"'pid':'",
            b"Nov ",
        ),
        *(b'\\"pid\\":\\"', b'"pid":"\\', b"1 hour and ", b"eta ", b"1.5 s"),
    ],
)
def test_a_megabyte_takes_no_longer_than_a_thousand_kilobytes(pattern: bytes) -> None:
    text = b'"%b"' % (pattern * (MEGABYTE // len(pattern)))
    started = time.process_time()

    Masking().masked_result(text)
    Masking().masked_arguments(text)

    assert time.process_time() - started < 10.0, "quadratic time would be hours"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "at 12:34:56 and 2026-11-29T12:34Z", ["12:34:56", "2026-11-29T12:34Z"], id="two"
        ),
        pytest.param("Nov 29, 2026 12:34:56 UTC", ["Nov 29, 2026 12:34:56 UTC"], id="one-whole"),
        pytest.param("\u00fc\u00fc 12:34:56", ["12:34:56"], id="behind-other-letters"),
        pytest.param("on 2026-11-29", [], id="a-day-is-none"),
    ],
)
def test_where_moments_stand_in_a_text(text: str, found: list[str]):
    assert [text[start:end] for start, end in moments_in(text)] == found
