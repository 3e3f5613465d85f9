"""OTLP/JSON lines: what every spelling of a field means, and what is said about a bad one."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from otel_loopguard.replay import ReplayError, read_spans
from otel_loopguard.spans import SpanEventRecord, SpanRecord

TRACE_ID = "5b8efff798038103d269b633813fc60c"
SPAN_ID = "eee19b7ec3c1b174"


def line_of(**fields: Any) -> str:
    span = {"traceId": TRACE_ID, "spanId": SPAN_ID, "name": "s", **fields}
    return json.dumps(
        {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "lib"}, "spans": [span]}]}]}
    )


def span_of(**fields: Any) -> SpanRecord:
    [span] = read_spans(line_of(**fields))
    return span


def value_of(value: dict[str, Any] | None) -> object:
    return span_of(attributes=[{"key": "k", "value": value}]).attributes["k"]


def test_a_whole_span():
    line = line_of(
        parentSpanId="eee19b7ec3c1b173",
        flags=0x301,
        name="execute_tool search",
        kind=3,
        startTimeUnixNano="1795984640382639939",
        endTimeUnixNano="1795984640384017559",
        attributes=[
            {"key": "gen_ai.tool.name", "value": {"stringValue": "search"}},
            {"key": "n", "value": {"intValue": "7"}},
        ],
        events=[
            {
                "timeUnixNano": "1",
                "name": "exception",
                "attributes": [{"key": "exception.type", "value": {"stringValue": "E"}}],
            }
        ],
        status={"code": 2, "message": "it broke"},
    )
    assert read_spans(line) == [
        SpanRecord(
            name="execute_tool search",
            trace_id=0x5B8EFFF798038103D269B633813FC60C,
            span_id=0xEEE19B7EC3C1B174,
            parent_id=0xEEE19B7EC3C1B173,
            parent_is_remote=True,
            scope="lib",
            attributes={"gen_ai.tool.name": "search", "n": 7},
            events=(SpanEventRecord(name="exception", attributes={"exception.type": "E"}),),
            is_error=True,
            status_message="it broke",
            started_ns=1795984640382639939,
            ended_ns=1795984640384017559,
        )
    ]


def test_what_is_missing_has_the_proto_default():
    assert span_of() == SpanRecord(
        name="s", trace_id=int(TRACE_ID, 16), span_id=int(SPAN_ID, 16), scope="lib"
    )


VALUES: list[tuple[dict[str, Any] | None, object]] = [
    ({"stringValue": ""}, ""),
    ({"stringValue": "Ünï"}, "Ünï"),
    ({"intValue": "42"}, 42),
    ({"intValue": 42}, 42),
    ({"intValue": "-9223372036854775808"}, -(2**63)),
    ({"intValue": 3.0}, 3),
    ({"doubleValue": 0.5}, 0.5),
    ({"doubleValue": 1}, 1.0),
    ({"doubleValue": "Infinity"}, math.inf),
    ({"boolValue": False}, False),
    ({"boolValue": True}, True),
    ({"bytesValue": "aGk="}, b"hi"),
    ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}, {}]}}, ("a", 1, None)),
    ({"arrayValue": {}}, ()),
    (
        {"kvlistValue": {"values": [{"key": "q", "value": {"arrayValue": {"values": []}}}]}},
        {"q": ()},
    ),
    ({}, None),
    (None, None),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_values(value: dict[str, Any] | None, expected: object):
    found = value_of(value)
    assert found == expected
    assert type(found) is type(expected)


def test_not_a_number_is_read_as_the_json_mapping_writes_it_and_as_python_does():
    assert math.isnan(value_of({"doubleValue": "NaN"}))  # type: ignore[arg-type]
    assert math.isnan(value_of({"doubleValue": math.nan}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "is_error"),
    [
        ({"status": {"code": 2}}, True),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, True),
        ({"status": {"code": 1}}, False),
        ({"status": {"code": "STATUS_CODE_OK"}}, False),
        ({"status": {}}, False),
        ({"status": None}, False),
    ],
)
def test_status(fields: dict[str, Any], *, is_error: bool):
    assert span_of(**fields).is_error is is_error


@pytest.mark.parametrize(
    ("flags", "remote"), [(0, False), (1, False), (0x100, False), (0x200, False), (0x300, True)]
)
def test_a_parent_is_remote_only_where_the_flags_say_that_they_know(flags: int, *, remote: bool):
    assert span_of(parentSpanId=SPAN_ID, flags=flags).parent_is_remote is remote


@pytest.mark.parametrize(
    ("start", "end", "times"),
    [
        ("5", "9", (5, 9)),
        (5, 9, (5, 9)),
        ("5", "0", (5, None)),
        ("5", 0, (5, None)),
        (5.0, 9.0, (5, 9)),
    ],
)
def test_times(start: object, end: object, times: tuple[int, int | None]):
    span = span_of(startTimeUnixNano=start, endTimeUnixNano=end)
    assert (span.started_ns, span.ended_ns) == times


@pytest.mark.parametrize("parent", ["", "0000000000000000"])
def test_a_parent_id_of_nothing_or_zero_is_none(parent: str):
    assert span_of(parentSpanId=parent).parent_id is None


def test_ids_may_be_base64_as_in_plain_protobuf_json():
    span = span_of(traceId="W47/95gDgQPSabYzgT/GDA==", spanId="7uGbfsPBsXQ=")
    assert (span.trace_id, span.span_id) == (int(TRACE_ID, 16), int(SPAN_ID, 16))


def test_hex_ids_may_be_in_capitals():
    assert span_of(spanId=SPAN_ID.upper()).span_id == int(SPAN_ID, 16)


def test_field_names_may_be_in_snake_case_and_attribute_names_stay_as_they_are():
    line = json.dumps(
        {
            "resource_spans": [
                {
                    "scope_spans": [
                        {
                            "spans": [
                                {
                                    "trace_id": TRACE_ID,
                                    "span_id": SPAN_ID,
                                    "start_time_unix_nano": "3",
                                    "attributes": [
                                        {"key": "tool_name", "value": {"string_value": "a_b"}}
                                    ],
                                }
                            ]
                        }
                    ]
                }
            ]
        }
    )
    [span] = read_spans(line)
    assert (span.started_ns, span.attributes) == (3, {"tool_name": "a_b"})


def test_all_spans_of_a_line_come_in_its_order():
    spans = [{"traceId": TRACE_ID, "spanId": f"{n:016x}", "name": str(n)} for n in (1, 2, 3, 4)]
    line = json.dumps(
        {
            "resourceSpans": [
                {"scopeSpans": [{"spans": spans[:2]}, {"spans": spans[2:3]}]},
                {"scopeSpans": [{"spans": spans[3:]}]},
                {},
            ]
        }
    )
    assert [span.name for span in read_spans(line.encode())] == ["1", "2", "3", "4"]


def test_a_text_cut_within_a_surrogate_pair_is_read():
    line = line_of(attributes=[{"key": "k", "value": {"stringValue": "\ud83d"}}])
    assert "\\ud83d" in line
    [span] = read_spans(line)
    assert span.attributes == {"k": "\ud83d"}


def deep_value(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


def test_deep_values_are_read_up_to_a_depth():
    assert value_of(deep_value(80))
    with pytest.raises(ReplayError, match="values nested at most"):
        value_of(deep_value(200))


SPAN = "resourceSpans[0].scopeSpans[0].spans[0]"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"traceId": "abc"}, f"{SPAN}.traceId: expected 32 hex digits, got 'abc'"),
        ({"spanId": "x" * 16}, f"{SPAN}.spanId: expected 16 hex digits, got 'xxxxxxxxxxxxxxxx'"),
        (
            {"spanId": "0" * 16},
            f"{SPAN}.spanId: expected an id that is not zero, got none, or zero",
        ),
        ({"parentSpanId": "1 "}, f"{SPAN}.parentSpanId: expected 16 hex digits, got '1 '"),
        ({"name": 5}, f"{SPAN}.name: expected a string, got 5"),
        ({"flags": "x"}, f"{SPAN}.flags: expected a whole number, got 'x'"),
        (
            {"startTimeUnixNano": "soon"},
            f"{SPAN}.startTimeUnixNano: expected a whole number or the text of one, got 'soon'",
        ),
        (
            {"attributes": [{"key": "n", "value": {"intValue": "1.5"}}]},
            f"{SPAN}.n.intValue: expected a whole number or the text of one, got '1.5'",
        ),
        (
            {"attributes": [{"key": "n", "value": {"intValue": 1.5}}]},
            f"{SPAN}.n.intValue: expected a whole number or the text of one, got 1.5",
        ),
        (
            {"attributes": [{"key": "n", "value": {"doubleValue": "much"}}]},
            f"{SPAN}.n.doubleValue: expected a number or the text of one, got 'much'",
        ),
        (
            {"attributes": [{"key": "n", "value": {"bytesValue": "?"}}]},
            f"{SPAN}.n.bytesValue: expected base64, got '?'",
        ),
        (
            {"attributes": [{"key": "n", "value": {"boolValue": "yes"}}]},
            f"{SPAN}.attributes[0].value.boolValue: expected true or false or null, got 'yes'",
        ),
        ({"attributes": {}}, f"{SPAN}.attributes: expected an array, got {{}}"),
    ],
)
def test_a_bad_field_is_named_with_what_was_expected(fields: dict[str, Any], message: str):
    with pytest.raises(ReplayError) as caught:
        span_of(**fields)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "resourceSpans: expected this field, got nothing"),
        ("[]", "the line: expected an object, got []"),
        ('{"resourceSpans": 5}', "resourceSpans: expected an array, got 5"),
        ('{"resource_spans": 5}', "resourceSpans: expected an array, got 5"),
        ("resource", "expected JSON, got 'resource': Expecting value: line 1 column 1 (char 0)"),
        (b"\xff", "expected UTF-8 text, got b'\\xff'"),
        ('{"resourceSpans": [', "expected JSON, got"),
        ("[" * 100_000, "expected JSON, got one that is nested too deeply"),
        ('{"x": ' + "[" * 100_000, "expected JSON, got one that is nested too deeply"),
        (
            '{"resource_spans": ' + "[" * 300 + "]" * 300 + "}",
            "the line: expected values nested at most 200 deep, got deeper ones",
        ),
    ],
)
def test_a_line_that_is_no_trace_request(line: bytes | str, message: str):
    with pytest.raises(ReplayError) as caught:
        read_spans(line)
    assert str(caught.value).startswith(message)
