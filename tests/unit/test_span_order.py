"""Recorded spans in the order in which they happened."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from otel_loopguard.replay.span_order import in_order
from otel_loopguard.spans import SpanRecord

NOON_NS = 1_700_000_000_000_000_000


def span(span_id: int, start: int, end: int | None, parent: int | None = None) -> SpanRecord:
    return SpanRecord(
        name=str(span_id),
        trace_id=1,
        span_id=span_id,
        parent_id=parent,
        started_ns=NOON_NS + start + 1,  # no clock that counts milliseconds says so
        ended_ns=None if end is None else NOON_NS + end + 1,
    )


def coarse(span_id: int, start_ms: int, ms: float, parent: int | None = None) -> SpanRecord:
    """Return a span whose clock counts whole milliseconds at its start."""
    start = start_ms * 1_000_000 - 1
    return span(span_id, start, start + int(ms * 1_000_000), parent)


def order_of(*spans: SpanRecord) -> str:
    return " ".join(
        ("-" if moment.is_end else "+") + moment.span.name for moment in in_order(spans)
    )


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param([span(1, 0, 9)], "+1 -1", id="one"),
        pytest.param([span(1, 0, None)], "+1", id="one that never ended"),
        pytest.param([span(1, 5, 3)], "+1 -1", id="a clock that went back"),
        pytest.param([span(2, 2, 4, 1), span(1, 0, 9)], "+1 +2 -2 -1", id="child within parent"),
        pytest.param(
            [span(2, 0, 9, 1), span(1, 0, 9)], "+1 +2 -2 -1", id="child as long as parent"
        ),
        pytest.param(
            [span(3, 0, 9, 2), span(2, 0, 9, 1), span(1, 0, 9)],
            "+1 +2 +3 -3 -2 -1",
            id="three as long as each other",
        ),
        pytest.param([span(1, 0, 0), span(2, 0, 0, 1)], "+1 +2 -2 -1", id="no time at all"),
        pytest.param([span(1, 0, 4), span(2, 4, 9)], "+1 -1 +2 -2", id="one after the other"),
        pytest.param([span(2, 4, 9), span(1, 0, 4)], "+1 -1 +2 -2", id="in another order of lines"),
        pytest.param(
            [span(2, 9, 9, 1), span(1, 0, 9)], "+1 +2 -2 -1", id="child at the parent's last moment"
        ),
        pytest.param(
            [span(3, 9, 9, 2), span(2, 4, 9, 1), span(1, 0, 9)],
            "+1 +2 +3 -3 -2 -1",
            id="grandchild at the last moment of both",
        ),
        pytest.param(
            [span(2, 0, 5, 1), span(3, 0, 3, 1), span(1, 0, 9)],
            "+1 +2 +3 -3 -2 -1",
            id="side by side",
        ),
        pytest.param(
            [coarse(2, 3, 0.3, 1), coarse(3, 3, 0.1, 1), coarse(1, 0, 9)],
            "+1 +2 -2 +3 -3 -1",
            id="one after the other by a coarse clock",
        ),
        pytest.param(
            [coarse(3, 3, 2.5, 1), coarse(2, 3, 3, 1), coarse(1, 0, 9)],
            "+1 +3 +2 -3 -2 -1",
            id="side by side by a coarse clock",
        ),
        pytest.param(
            [coarse(2, 3, 0.4, 1), coarse(4, 3, 0.1, 3), coarse(3, 3, 0.2, 1), coarse(1, 0, 9)],
            "+1 +2 +3 +4 -4 -3 -2 -1",
            id="no later than what is below it",
        ),
        pytest.param(
            [coarse(1, 0, 2.9), coarse(2, 3, 0.1, 1)],
            "+1 +2 -2 -1",
            id="below one that ended in the millisecond before",
        ),
        pytest.param(
            [coarse(1, 0, 2.9), coarse(2, 5, 0.1, 1)],
            "+1 -1 +2 -2",
            id="below one that ended long before",
        ),
        pytest.param([span(1, 0, 3, 7)], "+1 -1", id="parent not recorded"),
        pytest.param([span(1, 0, 3, 1)], "+1 -1", id="its own parent"),
        pytest.param([span(1, 0, 9, 2), span(2, 0, 9, 1)], "+2 +1 -1 -2", id="parents in a circle"),
        pytest.param([span(1, 0, 9), span(1, 0, 9)], "+1 -1", id="recorded twice"),
        pytest.param([span(1, 0, None), span(1, 0, 9)], "+1 -1", id="open, then ended"),
        pytest.param([span(1, 0, 9), span(1, 0, None)], "+1 -1", id="ended, then open"),
    ],
)
def test_order(spans: list[SpanRecord], expected: str):
    assert order_of(*spans) == expected


def test_the_order_of_lines_does_not_matter():
    spans = [span(1, 0, 9), span(2, 0, 9, 1), span(3, 2, 4, 2), span(4, 4, 9, 2)]
    assert {order_of(*shuffled) for shuffled in itertools.permutations(spans)} == {
        "+1 +2 +3 -3 +4 -4 -2 -1"
    }


def test_equal_span_ids_of_two_traces_are_two_spans():
    other = msgspec.structs.replace(span(1, 1, 2), name="other", trace_id=2)
    assert order_of(span(1, 0, 9), other) == "+1 +other -other -1"


def test_a_deep_tree_takes_no_recursion():
    spans = [span(n, 0, 9, n - 1 or None) for n in range(1, 5_001)]
    moments = in_order(reversed(spans))
    assert [moment.span.span_id for moment in moments[:5_000]] == list(range(1, 5_001))
    assert [moment.span.span_id for moment in moments[5_000:]] == list(range(5_000, 0, -1))
