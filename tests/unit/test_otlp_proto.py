"""OTLP protobuf: the same spans as OTLP/JSON gives, and nothing but an error for other bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from otel_loopguard.replay import ReplayError, read_spans
from otel_loopguard.replay.otlp_proto import read_message
from otel_loopguard.spans import SpanEventRecord, SpanRecord
from tests._recorded_protobuf import (
    json_lines,
    logs,
    messages,
    metrics,
    part,
    varint,
)
from tests._recordings import Recording, recordings

TRACE_ID, SPAN_ID = bytes(range(1, 17)), bytes(range(1, 9))
RECORDED = [each for each in recordings() if each.script == "finish3"]
IDS = part(1, TRACE_ID) + part(2, SPAN_ID) + varint(7 << 3 | 1) + bytes([5, *[0] * 7])


def request_with(*spans: bytes, scope: bytes = b"") -> bytes:
    """Return a request of spans that are bytes already, right or wrong."""
    return part(1, part(2, scope + b"".join(part(2, span) for span in spans)))


def span_of(fields: bytes) -> SpanRecord:
    [span] = read_message(request_with(IDS + fields))
    return span


def value_of(value: bytes) -> object:
    return span_of(part(9, part(1, b"k") + part(2, value))).attributes["k"]


@pytest.mark.parametrize("recording", RECORDED, ids=str)
def test_recorded_spans_are_those_of_the_json_recording(recording: Recording):
    pairs = list(zip(json_lines(recording), messages(recording), strict=True))
    assert pairs
    for line, message in pairs:
        assert read_message(message) == read_spans(line) != []


def test_a_whole_span():
    span = Span(
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        parent_span_id=bytes([9] * 8),
        trace_state="a=b",
        flags=0x301,
        name="execute_tool search",
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=1795984640382639939,
        end_time_unix_nano=1795984640384017559,
        dropped_attributes_count=3,
    )
    span.attributes.add(key="gen_ai.tool.name").value.string_value = "search"
    span.attributes.add(key="n").value.int_value = -7
    span.attributes.add(key="n").value.int_value = 7
    event = span.events.add(name="exception", time_unix_nano=1)
    event.attributes.add(key="exception.type").value.string_value = "E"
    span.links.add(trace_id=TRACE_ID, span_id=SPAN_ID)
    span.status.code, span.status.message = Status.STATUS_CODE_ERROR, "it broke"
    scope = part(1, part(1, b"lib") + part(2, b"1.0"))
    assert read_message(request_with(span.SerializeToString(), scope=scope)) == [
        SpanRecord(
            name="execute_tool search",
            trace_id=int.from_bytes(TRACE_ID, "big"),
            span_id=int.from_bytes(SPAN_ID, "big"),
            parent_id=0x0909090909090909,
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


TEXT = part(1, b"x")
VALUES: list[tuple[str, bytes, object]] = [
    ("empty text", part(1, b""), ""),
    ("long text", part(1, b"x" * 300), "x" * 300),
    ("text that is no UTF-8", part(1, b"caf\xc3"), "caf\N{REPLACEMENT CHARACTER}"),
    ("true", b"\x10\x01", True),
    ("false", b"\x10\x00", False),
    ("a number", b"\x18\x2a", 42),
    ("a negative number", b"\x18" + varint(2**64 - 5), -5),
    ("the largest number", b"\x18" + varint(2**63 - 1), 2**63 - 1),
    ("infinity", b"\x21" + b"\x00" * 6 + b"\xf0\x7f", math.inf),
    ("bytes", part(7, b"hi"), b"hi"),
    ("an array", part(5, part(1, TEXT) + part(1, b"\x18\x01") + part(1, b"")), ("x", 1, None)),
    ("an empty array", part(5, b""), ()),
    ("a mapping", part(6, part(1, part(1, b"q") + part(2, part(5, b"")))), {"q": ()}),
    ("an index into a table of profiles", b"\x40\x03", None),
    ("nothing", b"", None),
    ("a field that is not known", part(99, b"x") + TEXT + b"\x78\x01", "x"),
    ("the last of several", TEXT + b"\x18\x01", 1),
    ("nothing after the last", TEXT + b"\x40\x03", None),
    ("an array in two parts", part(5, part(1, TEXT)) + part(5, part(1, TEXT)), ("x", "x")),
    ("an array that is replaced", part(5, part(1, TEXT)) + TEXT + part(5, b""), ()),
    ("text with another wire type", b"\x08\x01", None),
]


@pytest.mark.parametrize(
    ("value", "expected"),
    [pytest.param(value, expected, id=name) for name, value, expected in VALUES],
)
def test_values(value: bytes, expected: object):
    found = value_of(value)
    assert found == expected
    assert type(found) is type(expected)


LONG = part(1, b"k" * 199 + b"\x12")
LONG_PAIR: dict[str, object] = {"k" * 199 + "\x12": "x" * 15}
PAIRS: list[tuple[str, bytes, dict[str, object]]] = [
    ("no value", part(1, b"k"), {"k": None}),
    ("an empty value", part(1, b"k") + part(2, b""), {"k": None}),
    ("no key", part(2, TEXT), {"": "x"}),
    ("nothing", b"", {"": None}),
    ("the value first", part(2, TEXT) + part(1, b"k"), {"k": "x"}),
    ("two keys", part(1, b"j") + part(1, b"k") + part(2, TEXT), {"k": "x"}),
    ("a long key", part(1, b"k" * 200) + part(2, TEXT), {"k" * 200: "x"}),
    ("a long key that ends as a value begins", LONG + part(2, part(1, b"x" * 15)), LONG_PAIR),
    ("a key that is no UTF-8", part(1, b"\xff") + part(2, TEXT), {"\ufffd": "x"}),
    ("a value in parts", part(1, b"k") + part(2, part(5, part(1, TEXT))) * 2, {"k": ("x", "x")}),
    ("another field after it", part(1, b"k") + part(2, TEXT) + b"\x18\x01", {"k": "x"}),
    ("a key with a value in it", part(1, part(2, TEXT)), {part(2, TEXT).decode(): None}),
]


@pytest.mark.parametrize(
    ("pair", "expected"), [pytest.param(pair, expected, id=name) for name, pair, expected in PAIRS]
)
def test_pairs(pair: bytes, expected: dict[str, object]):
    assert span_of(part(9, pair)).attributes == expected
    event = span_of(part(11, part(2, b"e") + part(3, pair))).events[0]
    assert (event.name, event.attributes) == ("e", expected)


def test_parts_of_a_message_are_merged_and_the_last_of_equal_fields_counts():
    status = part(15, part(2, b"first") + b"\x18\x02") + part(15, part(2, b"second"))
    scope = part(1, part(1, b"one")) + part(1, part(2, b"version"))
    [span] = read_message(request_with(IDS + part(5, b"a") + status + part(5, b"b"), scope=scope))
    assert (span.name, span.scope) == ("b", "one")
    assert (span.is_error, span.status_message) == (True, "second")


def deep(levels: int, *, mapping: bool) -> tuple[bytes, dict[str, Any]]:
    value, same = b"\x18\x01", {"intValue": "1"}
    for _ in range(levels):
        value = part(6, part(1, part(2, value))) if mapping else part(5, part(1, value))
        inner: Any = {"value": same} if mapping else same
        same = {"kvlistValue" if mapping else "arrayValue": {"values": [inner]}}
    return value, same


@pytest.mark.parametrize("mapping", [True, False])
@pytest.mark.parametrize("levels", [1, 80, 92, 93, 94, 95, 200, 5_000])
def test_values_may_be_as_deep_as_in_json(levels: int, *, mapping: bool):
    value, same = deep(levels, mapping=mapping)
    ids = {"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex(), "startTimeUnixNano": "5"}
    expected: object = "refused"
    if levels < 1_000:
        span = {**ids, "attributes": [{"key": "k", "value": same}]}
        expected = outcome(
            read_spans,
            json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode(),
        )
    message = request_with(IDS + part(9, part(1, b"k") + part(2, value)))
    assert outcome(read_message, message) == expected
    assert (expected == "refused") == (levels > 93)


def outcome(read: Callable[[bytes], list[SpanRecord]], data: bytes) -> object:
    try:
        return read(data)
    except ReplayError:
        return "refused"


SPAN = "resourceSpans[0].scopeSpans[0].spans[0]: "
BROKEN: list[tuple[str, bytes, str]] = [
    ("a short id", part(1, b"abc") + IDS[18:], "traceId: expected 16 bytes, got 3"),
    ("no id", IDS[:18] + IDS[28:], "spanId: expected an id that is not zero, got none, or zero"),
    ("an id of zeros", IDS + part(2, bytes(8)), "spanId: expected an id that is not zero"),
    ("a long parent", IDS + part(4, b"123456789"), "parentSpanId: expected 8 bytes, got 9"),
    ("a group", IDS + b"\x1b", "expected wire type 0, 1, 2 or 5 before byte "),
    ("field 0", IDS + b"\x00\x00", "expected a field's number from 1 before byte "),
    ("a longer field", IDS + b"\x2a\x05ab", "expected a field that ends at byte "),
    ("an endless number", IDS + b"\x30" + b"\xff" * 11, "expected a number of at most 10 bytes"),
    ("a longer pair", IDS + part(9, b"\x0a\x09k"), "expected a field that ends at byte "),
]


@pytest.mark.parametrize(
    ("span", "message"), [pytest.param(span, why, id=name) for name, span, why in BROKEN]
)
def test_what_is_wrong_with_a_span(span: bytes, message: str):
    with pytest.raises(ReplayError) as caught:
        read_message(request_with(span))
    assert str(caught.value).startswith(SPAN + message)


@pytest.mark.parametrize("parent", [b"", part(4, b""), part(4, bytes(8))])
def test_a_parent_id_of_nothing_or_zero_is_none(parent: bytes):
    assert span_of(parent).parent_id is None


@pytest.mark.parametrize(
    ("flags", "remote"), [(0, False), (1, False), (0x100, False), (0x200, False), (0x300, True)]
)
def test_a_parent_is_remote_only_where_the_flags_say_that_they_know(flags: int, *, remote: bool):
    assert span_of(b"\x85\x01" + flags.to_bytes(4, "little")).parent_is_remote is remote


@pytest.mark.parametrize(
    "message",
    [
        b"",
        logs(),
        metrics(),
        metrics("sixteen.letters_"),
        request_with(part(3, b"INFO") + part(5, TEXT)),
    ],
)
def test_other_signals_hold_no_spans(message: bytes):
    assert read_message(message) == []


def test_a_span_of_ids_alone_is_a_span():
    assert len(read_message(request_with(part(1, TRACE_ID) + part(2, SPAN_ID)))) == 1


# A lone surrogate cannot be written in protobuf.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
make: Any = AnyValue
any_values: st.SearchStrategy[Any] = st.recursive(
    st.just(make())
    | texts.map(lambda value: make(string_value=value))
    | st.text("ab", min_size=125, max_size=140).map(lambda value: make(string_value=value))
    | st.booleans().map(lambda value: make(bool_value=value))
    | st.integers(-(2**63), 2**63 - 1).map(lambda value: make(int_value=value))
    | st.floats(allow_nan=False).map(lambda value: make(double_value=value))
    | st.binary(max_size=6).map(lambda value: make(bytes_value=value)),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda v: make(array_value={"values": v}))
        | st.lists(st.tuples(texts, inner), max_size=3).map(
            lambda v: make(kvlist_value={"values": [{"key": k, "value": x} for k, x in v]})
        )
    ),
    max_leaves=5,
)
pairs: st.SearchStrategy[Any] = st.lists(
    st.tuples(texts | st.text("k", min_size=126, max_size=130), any_values).map(
        lambda pair: {"key": pair[0], "value": pair[1]}
    ),
    max_size=4,
)
times = st.integers(0, 2**64 - 1)


def ids(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size) | st.just(bytes(size)) | st.just(b"")


def objects(optional: dict[str, Any], **given: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(given, optional=optional)


events = objects({"name": texts, "attributes": pairs, "time_unix_nano": times})
optional: dict[str, Any] = {
    "parent_span_id": ids(8),
    "flags": st.integers(0, 2**32 - 1),
    "name": texts,
    "kind": st.integers(0, 5),
    "start_time_unix_nano": times,
    "end_time_unix_nano": times,
    "attributes": pairs,
    "dropped_attributes_count": st.integers(0, 300),
    "events": st.lists(events, max_size=2),
    "status": objects({"code": st.integers(0, 2), "message": texts}),
}
spans = objects(optional, trace_id=ids(16), span_id=ids(8))
named: dict[str, Any] = {"scope": objects({"name": texts}), "schema_url": texts}
scopes = objects(named, spans=st.lists(spans, max_size=3))
requests = st.lists(objects({}, scope_spans=st.lists(scopes, max_size=2)), min_size=1, max_size=2)


@given(requests)
def test_what_protobuf_writes_is_what_json_says(resource_spans: Any):
    request = ExportTraceServiceRequest(resource_spans=resource_spans)
    first = next((s for r in request.resource_spans for c in r.scope_spans for s in c.spans), None)
    if first is not None and not first.start_time_unix_nano:
        # Without it, broken ids make a span that may as well be a metric.
        first.start_time_unix_nano = 1
    expected = outcome(read_spans, MessageToJson(request).encode())
    assert outcome(read_message, request.SerializeToString()) == expected


@given(st.binary() | st.binary().map(lambda data: request_with(IDS + data)))
def test_any_bytes_are_spans_or_an_error(data: bytes):
    outcome(read_message, data)


@given(st.data())
def test_a_request_with_some_other_bytes_is_spans_or_an_error(data: st.DataObject):
    message = bytearray(messages(RECORDED[0])[0])
    for place in data.draw(st.lists(st.integers(0, len(message) - 1), max_size=4)):
        message[place] = data.draw(st.integers(0, 255))
    outcome(read_message, bytes(message))


def test_a_request_cut_at_any_byte_is_an_error():
    whole = messages(RECORDED[0])[0]
    assert read_message(whole)
    for length in range(1, len(whole)):
        assert outcome(read_message, whole[:length]) == "refused"
