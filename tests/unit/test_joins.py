"""What spans with nothing around them are held together by, and how long."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from otel_loopguard import LoopGuard, Policy, joins
from otel_loopguard.joins import Joins, Key
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT, Slot
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

SECOND = 10**9
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
MODEL = {"gen_ai.operation.name": "chat"}


def asks(*calls: str) -> Mapping[str, object]:
    parts: list[object] = [
        {"type": "tool_call", "id": call, "name": "t", "arguments": {}} for call in calls
    ]
    turn: dict[str, object] = {"role": "assistant", "parts": parts, "finish_reason": "tool_call"}
    return {**MODEL, "gen_ai.output.messages": json.dumps([turn])}


def finishes() -> Mapping[str, object]:
    parts = [{"type": "text", "content": "Done."}]
    turn = {"role": "assistant", "parts": parts, "finish_reason": "stop"}
    reasons = {"gen_ai.response.finish_reasons": ("stop",)}
    return {**MODEL, **reasons, "gen_ai.output.messages": json.dumps([turn])}


def hears(*calls: str) -> Mapping[str, object]:
    parts = [{"type": "tool_call_response", "id": call, "response": "x"} for call in calls]
    return {"gen_ai.input.messages": json.dumps([{"role": "tool", "parts": parts}])}


def spoken() -> Mapping[str, object]:
    parts = [{"type": "text", "content": "And now?"}]
    return {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": parts}])}


def of(conversation: str) -> Mapping[str, object]:
    return {"gen_ai.conversation.id": conversation}


class Orphan(NamedTuple):
    """A span with nothing around it."""

    shows: Mapping[str, object]
    at_s: float = 0.0


class Told:
    """What a tracker made of orphans."""

    def __init__(self, policy: Policy | None = None, *, live: bool = True) -> None:
        self.closed: list[Run] = []
        self.tracker = RunTracker(
            policy or Policy.none(), live=live, on_closed=lambda run, _: self.closed.append(run)
        )
        self._spans = 0

    def run(self, orphan: Orphan) -> Run:
        """Tell of a span in a context of its own, and return its run."""
        self._spans += 1
        start = SpanRecord(
            name="span",
            trace_id=self._spans,
            span_id=self._spans,
            attributes=orphan.shows,
            started_ns=int((1_000 + orphan.at_s) * SECOND),
        )
        end = SpanRecord(
            name="span",
            trace_id=self._spans,
            span_id=self._spans,
            attributes=orphan.shows,
            started_ns=start.started_ns,
            ended_ns=start.started_ns + 1,
        )
        context = contextvars.Context()
        context.run(CURRENT.set, None)
        told: list[Verdict | None] = [
            context.run(self.tracker.started, start),
            context.run(self.tracker.ended, end),
        ]
        return next(verdict.run for verdict in told if verdict is not None)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        pytest.param({**TOOL, **of("a")}, {**TOOL, **of("a")}, True, id="one conversation"),
        pytest.param({**TOOL, **of("a")}, {**TOOL, **of("b")}, False, id="two conversations"),
        pytest.param(TOOL, TOOL, False, id="tools that name nothing"),
        pytest.param(
            asks("call_000001"),
            {**asks("call_000002"), **hears("call_000001")},
            True,
            id="a call and its answer",
        ),
        pytest.param(
            asks("call_000001"),
            {**TOOL, "gen_ai.tool.call.id": "call_000001"},
            True,
            id="a call and its execution",
        ),
        pytest.param(
            asks("call_1"),
            {**asks("call_2"), **hears("call_1")},
            False,
            id="an id that servers give again and again",
        ),
        pytest.param(
            asks("call_000001"),
            {**asks("call_000002"), **hears("call_000009")},
            False,
            id="an answer to another call",
        ),
        pytest.param(
            {**asks("call_000001"), "gen_ai.response.id": "r"},
            {**asks("call_000002"), "gen_ai.request.previous_response.id": "x"},
            False,
            id="another answer's id",
        ),
        pytest.param(
            {**asks("call_000001"), "gen_ai.response.id": "r"},
            {**asks("call_000002"), "gen_ai.request.previous_response.id": "r"},
            True,
            id="the answer that it goes on from",
        ),
        pytest.param(
            {**finishes(), **of("a")},
            {**finishes(), **of("a"), **spoken()},
            False,
            id="a person speaks after a finished turn",
        ),
        pytest.param(
            {**asks("call_000001"), **of("a")},
            {**finishes(), **of("a"), **spoken()},
            True,
            id="a person speaks amid the work",
        ),
        pytest.param(
            {**asks("call_000001"), **of("a")},
            {**asks("call_000002"), **of("b"), **hears("call_000001")},
            False,
            id="the conversation is surer than a call's id",
        ),
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_which_orphans_are_one_run(
    first: Mapping[str, object], second: Mapping[str, object], *, together: bool, live: bool
) -> None:
    told = Told(live=live)

    assert (told.run(Orphan(first)) is told.run(Orphan(second, 1))) is together


@pytest.mark.parametrize(("silent_s", "goes_on"), [(299, True), (300, False), (-500, True)])
def test_a_long_silence_ends_a_run(silent_s: float, *, goes_on: bool) -> None:
    told = Told()
    first = told.run(Orphan({**TOOL, **of("a")}))

    assert (told.run(Orphan({**TOOL, **of("a")}, silent_s)) is first) is goes_on
    assert told.closed == ([] if goes_on else [first])


def test_a_trip_does_not_outlive_its_run() -> None:
    told = Told(Policy.none().with_limits(max_tool_calls=1))
    tripped = [told.run(Orphan({**TOOL, **of("a")}, at_s)) for at_s in (0, 1)][-1]
    assert tripped.trip is not None

    assert told.run(Orphan({**TOOL, **of("a")}, 400)).trip is None
    assert tripped.ended


def test_an_id_that_two_runs_use_says_nothing() -> None:
    told = Told()
    runs = {told.run(Orphan(asks("call_000001"))) for _ in range(3)}
    assert len(runs) == 3

    assert told.run(Orphan({**asks("call_000001"), **hears("call_000001")})) not in runs


def test_the_next_run_may_use_the_ids_of_one_that_has_finished() -> None:
    told = Told()
    first = told.run(Orphan(asks("call_000001")))
    assert told.run(Orphan({**finishes(), **hears("call_000001")})) is first
    second = told.run(Orphan(asks("call_000001")))

    assert told.run(Orphan({**asks("call_000001"), **hears("call_000001")})) is second


def test_ids_of_a_run_that_has_ended_are_forgotten() -> None:
    told = Told()
    first = told.run(Orphan(asks("call_000001")))
    told.tracker.runs.close(first)

    assert told.run(Orphan({**asks("call_000002"), **hears("call_000001")})) is not first


def test_model_calls_in_each_other_wait_for_the_end_together() -> None:
    """A framework's span around the provider's: neither says at its start where it belongs."""
    told = Told()
    first = told.run(Orphan(asks("call_000001")))

    def tell(
        span_id: int, parent: int | None, shows: Mapping[str, object], end: int | None
    ) -> Verdict | None:
        hear = told.tracker.started if end is None else told.tracker.ended
        return contextvars.Context().run(
            hear,
            SpanRecord(
                name="s",
                trace_id=90,
                span_id=span_id,
                parent_id=parent,
                attributes=shows,
                started_ns=1_001 * SECOND,
                ended_ns=end,
            ),
        )

    assert tell(90, None, MODEL, None) is None
    assert tell(91, 90, MODEL, None) is None
    assert tell(91, 90, {**asks("call_000002"), **hears("call_000001")}, 1_002 * SECOND) is None
    verdict = tell(90, None, {**asks("call_000002"), **hears("call_000001")}, 1_003 * SECOND)

    assert verdict is not None
    assert verdict.run is first
    assert first.report().model_calls == 2


# ---------------------------------------------------------------------------------------- the store


def a_run() -> Run:
    return Run("r", "joined", LoopGuard(Policy.none()), Slot())


def test_the_first_id_that_is_known_counts_and_the_last_run_that_named_it() -> None:
    store, runs = Joins(), [a_run() for _ in range(3)]
    one: Key = ("call", "1")
    store.keep(one, runs[0])
    runs[0].ended = True
    store.keep(one, runs[1])
    store.keep(("conversation", "1"), runs[2])

    assert store.find([("call", "9"), one, ("conversation", "1")]) is runs[1]
    runs[1].ended = True
    assert store.find([one, ("conversation", "1")]) is runs[2]
    assert store.find([]) is None


def test_the_id_that_is_longest_unused_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "JOINS", 2)
    store, runs = Joins(), [a_run() for _ in range(4)]
    names: list[Key] = [("run", f"{number}") for number in range(4)]
    store.keep(names[0], runs[0])
    store.keep(names[1], runs[1])
    assert store.find([names[0]]) is runs[0]
    store.keep(names[2], runs[2])

    assert [store.find([name]) for name in names] == [runs[0], None, runs[2], None]
    assert store.evicted == 1
    runs[0].ended = True
    store.keep(names[3], runs[3])
    assert store.evicted == 1, "one of a run that has ended is no loss"
