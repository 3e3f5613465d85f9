"""The messages of an OTLP/JSON trace request, as far as they are read, for the decoder."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Number: TypeAlias = int | float | str
"""A 64-bit number in the protobuf JSON mapping."""


class Value(msgspec.Struct, rename="camel", gc=False):
    """An attribute value: one of its fields is set."""

    string_value: str | None = None
    int_value: Number | None = None
    double_value: Number | None = None
    bool_value: bool | None = None
    bytes_value: str | None = None
    array_value: Array | None = None
    kvlist_value: KeyValues | None = None


class Array(msgspec.Struct, gc=False):
    """Values in a row."""

    values: list[Value | None] = []


class KeyValue(msgspec.Struct, gc=False):
    """An attribute."""

    key: str = ""
    value: Value | None = None


class KeyValues(msgspec.Struct, gc=False):
    """Attributes within a value."""

    values: list[KeyValue] = []


class Event(msgspec.Struct, gc=False):
    """An event of a span."""

    name: str = ""
    attributes: list[KeyValue] = []


class Status(msgspec.Struct, gc=False):
    """A span's status; the code is a number or its name."""

    code: int | str = 0
    message: str = ""


class Span(msgspec.Struct, rename="camel", gc=False):
    """A span."""

    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    flags: int = 0
    name: str = ""
    start_time_unix_nano: Number = 0
    end_time_unix_nano: Number = 0
    attributes: list[KeyValue] = []
    events: list[Event] = []
    status: Status | None = None


class Scope(msgspec.Struct, gc=False):
    """What instrumented the code."""

    name: str = ""


class ScopeSpans(msgspec.Struct, gc=False):
    """The spans of a scope."""

    scope: Scope | None = None
    spans: list[Span] = []


class ResourceSpans(msgspec.Struct, rename="camel", gc=False):
    """The spans of a process."""

    scope_spans: list[ScopeSpans] = []


class Request(msgspec.Struct, rename="camel", gc=False):
    """An ExportTraceServiceRequest."""

    resource_spans: list[ResourceSpans]
