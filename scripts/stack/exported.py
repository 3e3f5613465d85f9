"""What the collector has exported: the spans in the JSON lines of its file exporter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: str | int | None = None
    bool_value: bool | None = None
    double_value: float | None = None

    def plain(self) -> str | int | float | bool | None:
        if self.int_value is not None:
            return int(self.int_value)
        values = (self.string_value, self.bool_value, self.double_value)
        return next((value for value in values if value is not None), None)


class _Attribute(msgspec.Struct, frozen=True):
    key: str
    value: _Value = _Value()


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    time_unix_nano: str
    name: str = ""
    attributes: list[_Attribute] = []


class _Span(msgspec.Struct, frozen=True, rename="camel"):
    trace_id: str
    span_id: str
    name: str
    parent_span_id: str = ""
    attributes: list[_Attribute] = []
    events: list[_Event] = []


class _Scope(msgspec.Struct, frozen=True):
    spans: list[_Span] = []


class _Resource(msgspec.Struct, frozen=True):
    attributes: list[_Attribute] = []


class _Resources(msgspec.Struct, frozen=True, rename="camel"):
    resource: _Resource = _Resource()
    scope_spans: list[_Scope] = []


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    resource_spans: list[_Resources] = []


Attributes = dict[str, "str | int | float | bool | None"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a span."""

    name: str
    at: float
    """Seconds since 1970."""
    attributes: Attributes


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span that was exported."""

    service: str
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    attributes: Attributes
    events: tuple[Event, ...]


class Exported:
    """The spans of a file that is being written to, each read once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        """How many bytes of it, in whole lines."""

    def more(self) -> list[Span]:
        """The spans that have come since the last time, as they came."""
        spans: list[Span] = []
        with suppress(FileNotFoundError), self._file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if line.endswith(b"\n"):  # the last one may still be written to
                    spans += _spans(msgspec.json.decode(line, type=_Line))
                    self._read += len(line)
        return spans


def exported(file: Path) -> list[Span]:
    """All spans that are in the file by now."""
    return Exported(file).more()


def violations(spans: Iterable[Span], **attributes: str) -> list[tuple[Span, Event]]:
    """The violations in spans, each with its span; in attributes `__` is a dot."""
    wanted = {name.replace("__", "."): value for name, value in attributes.items()}
    return [
        (span, event)
        for span in spans
        for event in span.events
        if event.name == "loopguard.violation" and wanted.items() <= event.attributes.items()
    ]


def _spans(line: _Line) -> Iterator[Span]:
    for resources in line.resource_spans:
        service = _plain(resources.resource.attributes).get("service.name")
        for scope in resources.scope_spans:
            for span in scope.spans:
                yield Span(
                    service=str(service),
                    trace_id=span.trace_id,
                    span_id=span.span_id,
                    parent_id=span.parent_span_id,
                    name=span.name,
                    attributes=_plain(span.attributes),
                    events=tuple(
                        Event(
                            name=event.name,
                            at=int(event.time_unix_nano) / 1e9,
                            attributes=_plain(event.attributes),
                        )
                        for event in span.events
                    ),
                )


def _plain(attributes: list[_Attribute]) -> Attributes:
    return {attribute.key: attribute.value.plain() for attribute in attributes}
