"""What the gateway keeps: all of agents, everything that tripped, and a tenth of the rest."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests._collector import Collector, eventually, running, span, spans_of, to_file

ORDINARY, PROMPT, LONG, LATE = 2000, 60, 20, 20
"""Traces: of no agent; of agents that are quick; that outlive the decision; that begin after it."""
DECISION_WAIT_S = 2
DECIDED = "otelcol_processor_tail_sampling_sampling_trace_dropped_total"
CHAT = {"gen_ai.operation.name": "chat"}
TRIPPED = {"gen_ai.operation.name": "invoke_agent", "loopguard.tripped": True}
PARENT = {"parentSpanId": f"{1:016x}"}


class Traffic(NamedTuple):
    """The ids of the traces, by what they are."""

    ordinary: list[int]
    prompt: list[int]
    long: list[int]
    late: list[int]

    @classmethod
    def drawn(cls) -> Traffic:
        draw = random.Random(20_261_201)  # noqa: S311 -- the same ids each time, so the same tenth
        return cls(
            *([draw.getrandbits(128) for _ in range(n)] for n in (ORDINARY, PROMPT, LONG, LATE))
        )


class Kept(NamedTuple):
    """What came through, and what it was of."""

    traffic: Traffic
    spans: set[tuple[int, int]]
    """Trace and span."""
    file: Path

    def numbers(self, trace_id: int) -> set[int]:
        return {number for trace, number in self.spans if trace == trace_id}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("gateway")
    file = folder / "spans.jsonl"
    overlay = to_file(file, "traces/agents", "traces/others")
    traffic = Traffic.drawn()
    with running(
        folder, "gateway.yaml", overlay, {"DECISION_WAIT": f"{DECISION_WAIT_S}s"}
    ) as gateway:
        with ThreadPoolExecutor(4) as pool:
            for started in pool.map(gateway.send, first_batches(traffic)):
                assert started is None
        # The decision on whatever has come so far is made: a late span meets it.
        eventually(lambda: decided(gateway), "the decision on ordinary traces", gateway.said)
        gateway.send(
            [
                *(span(each, 2, **PARENT, attributes=CHAT) for each in traffic.long),
                *(span(each, 3, attributes=TRIPPED) for each in traffic.long),
                *(span(each, 4, **PARENT) for each in traffic.long),
                *(span(each, 2, **PARENT, attributes=CHAT) for each in traffic.late),
                *(span(each, 3, attributes=TRIPPED) for each in traffic.late),
                *(span(each, 4, **PARENT) for each in traffic.ordinary),
            ]
        )
        eventually(lambda: arrived(file, traffic), "the late spans", gateway.said)
        assert gateway.stop() == 0
    return Kept(traffic, keys(file), file)


def first_batches(traffic: Traffic) -> list[list[dict[str, object]]]:
    """Return what comes first, mixed as it would be, in batches."""
    spans = [
        *(span(each, number) for each in traffic.ordinary for number in (1, 2, 3)),
        *(span(each, 1, attributes={**TRIPPED}) for each in traffic.prompt),
        *(span(each, 2, **PARENT, attributes=CHAT) for each in traffic.prompt),
        *(span(each, 3, **PARENT) for each in traffic.prompt),
        *(span(each, 1, **PARENT, attributes=CHAT) for each in traffic.long),
        *(span(each, 1, **PARENT) for each in traffic.late),
    ]
    random.Random(1).shuffle(spans)  # noqa: S311
    return [spans[first : first + 100] for first in range(0, len(spans), 100)]


def decided(gateway: Collector) -> bool:
    counted = gateway.own_metrics()
    name = "otelcol_processor_tail_sampling_global_count_traces_sampled"
    total = counted.get(name, 0) or counted.get(f"{name}_total", 0)
    return total >= ORDINARY + PROMPT + LONG + LATE


def arrived(file: Path, traffic: Traffic) -> bool:
    found = keys(file)
    return all((each, 3) in found for each in (*traffic.long, *traffic.late))


def keys(file: Path) -> set[tuple[int, int]]:
    return {(int(each["traceId"], 16), int(each["spanId"], 16)) for each in spans_of(file)}


def test_all_that_tripped_is_kept(kept: Kept):
    assert all(1 in kept.numbers(each) for each in kept.traffic.prompt)
    assert all(3 in kept.numbers(each) for each in (*kept.traffic.long, *kept.traffic.late))


def test_agents_traces_are_kept_whole(kept: Kept):
    """With what is no agent's in them, and what comes after the decision."""
    assert all(kept.numbers(each) == {1, 2, 3} for each in kept.traffic.prompt)
    assert all(kept.numbers(each) == {1, 2, 3, 4} for each in kept.traffic.long)


def test_an_agent_that_begins_after_the_decision_is_kept(kept: Kept):
    """What was before it in its trace went with the tenth."""
    assert all({2, 3} <= kept.numbers(each) for each in kept.traffic.late)
    before = sum(1 in kept.numbers(each) for each in kept.traffic.late)
    assert before < LATE / 2


def test_nine_in_ten_ordinary_traces_are_dropped(kept: Kept):
    """Four standard deviations around a tenth; each is kept or dropped as a whole."""
    found = [kept.numbers(each) for each in kept.traffic.ordinary]
    some = [numbers for numbers in found if numbers]
    assert 146 <= len(some) <= 254
    assert all(numbers == {1, 2, 3, 4} for numbers in some)


def test_no_span_comes_twice(kept: Kept):
    assert len(spans_of(kept.file)) == len(kept.spans)


def test_what_told_spans_apart_in_the_gateway_does_not_leave_it(kept: Kept):
    assert kept.spans
    assert "kept_as" not in kept.file.read_text()
