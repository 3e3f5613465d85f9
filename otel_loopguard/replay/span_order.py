"""The starts and ends of recorded spans, in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import msgspec

from otel_loopguard.spans import SpanRecord

_Key: TypeAlias = "tuple[int, int]"
_Spans: TypeAlias = Mapping[_Key, SpanRecord]


GRAIN_NS = 1_000_000
"""Some clocks count whole milliseconds where a span starts and finer parts where it ends: what
happens below a span so little after its end happened before it."""


class SpanMoment(NamedTuple):
    """A span that starts or ends."""

    span: SpanRecord
    is_end: bool


class _Phase(IntEnum):
    """What comes first at equal times."""

    ENDS_OF_WHAT_WAS = 0
    STARTS = 1
    ENDS_OF_WHAT_STARTS_NOW = 2


def in_order(records: Iterable[SpanRecord]) -> list[SpanMoment]:
    """Return the starts and ends of spans by time; a span that never ended has only a start.

    At equal times parents start before their children and end after them, and a span ends before
    another one that is not below it starts. One that seems to end within a millisecond before what
    is below it does ends after that; one whose start is a whole millisecond starts after what
    stands before it in the file and ended beside it in that millisecond. A span recorded twice
    (exporters retry) is taken once.
    """
    spans: dict[_Key, SpanRecord] = {}
    for record in records:
        known = spans.get(_key(record))
        if known is None or known.ended_ns is None:
            spans[_key(record)] = record
    spans = _starting_after_siblings(spans)
    depths = _depths(spans)
    spans = _ending_after_children(spans, depths)
    late = _ending_as_others_start(spans)
    moments: list[tuple[tuple[int, _Phase, int], int, SpanMoment]] = []
    for place, (key, span) in enumerate(spans.items()):
        start = (span.started_ns, _Phase.STARTS, depths[key])
        moments.append((start, place, SpanMoment(span, is_end=False)))
        if span.ended_ns is not None:
            # Clocks step back: an end before the start is an end at the start.
            ended_ns = max(span.ended_ns, span.started_ns)
            phase = _Phase.ENDS_OF_WHAT_STARTS_NOW if key in late else _Phase.ENDS_OF_WHAT_WAS
            moments.append(((ended_ns, phase, -depths[key]), place, SpanMoment(span, is_end=True)))
    moments.sort(key=lambda moment: moment[:2])
    return [moment for _, _, moment in moments]


def _starting_after_siblings(spans: dict[_Key, SpanRecord]) -> dict[_Key, SpanRecord]:
    """Return the spans, with those put off that a coarse clock let begin before another's end.

    Within a millisecond the order of the file tells which of two came first: spans are written when
    they end. No span begins after what is below it.
    """
    found: dict[_Key, SpanRecord] = {}
    ended: dict[_Key, int] = {}
    first_below: dict[_Key, int] = {}
    for key, span in spans.items():
        above = span.trace_id, span.parent_id or 0
        before, end = ended.get(above, 0) if span.parent_id else 0, _end(span)
        late = 0
        if end is not None and span.started_ns and span.started_ns % GRAIN_NS == 0:
            late = before - span.started_ns
            late = min(late, first_below.get(key, before) - span.started_ns)
        moved = span
        if end is not None and 0 < late <= GRAIN_NS:
            moved = msgspec.structs.replace(
                span, started_ns=span.started_ns + late, ended_ns=end + late
            )
        found[key] = moved
        first_below[above] = min(first_below.get(above, moved.started_ns), moved.started_ns)
        ended[above] = max(before, _end(moved) or 0)
    return found


def _ending_after_children(
    spans: dict[_Key, SpanRecord], depths: Mapping[_Key, int]
) -> dict[_Key, SpanRecord]:
    """Return the spans, with ends put off where a coarse clock let what is below come after."""
    ends = {key: _end(span) for key, span in spans.items()}
    for key in sorted(spans, key=lambda each: -depths[each]):
        above, end = _above(spans, key), ends[key]
        parents_end = None if above is None else ends[above]
        if above is None or end is None or parents_end is None:
            continue
        for moment in (spans[key].started_ns, end):
            if parents_end < moment <= parents_end + GRAIN_NS:
                ends[above] = moment
    return {
        key: span if ends[key] == _end(span) else msgspec.structs.replace(span, ended_ns=ends[key])
        for key, span in spans.items()
    }


def _depths(spans: _Spans) -> dict[_Key, int]:
    """Return how many recorded spans each span hangs below."""
    depths: dict[_Key, int] = {}
    for key in spans:
        path: list[_Key] = []
        above: _Key | None = key
        # Each span is walked once; parents that go round in a circle (broken data) end the walk.
        while above is not None and above not in depths:
            depths[above] = 0
            path.append(above)
            above = _above(spans, above)
        depth = -1 if above is None else depths[above]
        for below in reversed(path):
            depth += 1
            depths[below] = depth
    return depths


def _ending_as_others_start(spans: _Spans) -> set[_Key]:
    """Return the spans that end at the moment at which they, or one below them, start."""
    late: set[_Key] = set()
    for key, span in spans.items():
        above: _Key | None = key
        while above is not None and above not in late and _end(spans[above]) == span.started_ns:
            late.add(above)
            above = _above(spans, above)
    return late


def _key(span: SpanRecord) -> _Key:
    return span.trace_id, span.span_id


def _above(spans: _Spans, key: _Key) -> _Key | None:
    parent_id = spans[key].parent_id
    if parent_id is None or (key[0], parent_id) not in spans:
        return None
    return key[0], parent_id


def _end(span: SpanRecord) -> int | None:
    return None if span.ended_ns is None else max(span.ended_ns, span.started_ns)
