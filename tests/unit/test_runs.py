"""Which run a span belongs to, what the run's guard is asked, and what is kept."""

from __future__ import annotations

import contextvars
import gc
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard import LoopGuard, Policy, RunReport, open_runs, runs, span_tree, tracker
from otel_loopguard.engine.run_state import RunState
from otel_loopguard.runs import Run
from otel_loopguard.slots import CURRENT, Slot
from otel_loopguard.span_tree import Node
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import StepKind
from otel_loopguard.tracker import RunTracker
from otel_loopguard.verdicts import Verdict

AGENT: Mapping[str, object] = {"gen_ai.operation.name": "invoke_agent"}
MODEL: Mapping[str, object] = {"gen_ai.operation.name": "chat"}
TOOL: Mapping[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
NOBODY: Mapping[str, object] = {"http.request.method": "POST"}

LLM_ONLY: frozenset[StepKind] = frozenset(("llm",))


class Feed:
    """Feeds spans to a tracker, by id."""

    def __init__(
        self, policy: Policy | None = None, *, live: bool = False, gated: bool = False
    ) -> None:
        self.closed: list[tuple[Run, RunReport | None]] = []
        self.tracker = RunTracker(
            policy or Policy.none(),
            live=live,
            prevented_kinds=LLM_ONLY if gated else frozenset(),
            on_closed=lambda run, report: self.closed.append((run, report)),
        )
        self._parents: dict[int, int | None] = {}

    def start(
        self,
        span_id: int,
        attributes: Mapping[str, object],
        parent: int | None = None,
        *,
        name: str = "span",
        remote: bool = False,
        live: object = None,
    ) -> Verdict | None:
        self._parents[span_id] = parent
        record = self._record(span_id, attributes, name=name, remote=remote)
        return self.tracker.started(record, live)

    def end(self, span_id: int, attributes: Mapping[str, object], **more: object) -> Verdict | None:
        written = {key.replace("__", "."): value for key, value in more.items()}
        return self.tracker.ended(
            self._record(span_id, {**attributes, **written}, name="span", ended_ns=2)
        )

    def whole(
        self, span_id: int, attributes: Mapping[str, object], parent: int | None = None
    ) -> Run:
        verdict = self.start(span_id, attributes, parent)
        assert verdict is not None
        self.end(span_id, attributes)
        return verdict.run

    def _record(self, span_id: int, attributes: Mapping[str, object], **more: Any) -> SpanRecord:
        return SpanRecord(
            name=more["name"],
            trace_id=7,
            span_id=span_id,
            parent_id=self._parents.get(span_id),
            parent_is_remote=more.get("remote", False),
            attributes=attributes,
            started_ns=1,
            ended_ns=more.get("ended_ns"),
        )


def run_of(verdict: Verdict | None) -> Run:
    assert verdict is not None
    return verdict.run


# ----------------------------------------------------------------------------- which run it is


def test_a_span_that_is_nobody_s_step_says_nothing() -> None:
    feed = Feed()

    assert feed.start(1, NOBODY) is None
    assert feed.end(1, NOBODY) is None
    assert feed.tracker.runs.open_runs() == ()


def test_the_agent_opens_the_run_not_the_root_of_the_trace() -> None:
    feed = Feed()
    feed.start(1, NOBODY)
    agent = feed.start(2, AGENT, 1, name="invoke_agent scout")
    assert agent is not None

    assert agent.opened
    assert agent.run.kind == "agent"
    assert agent.run.agent == "scout"
    assert agent.run.id == f"{7:032x}-{2:016x}"
    assert feed.whole(3, MODEL, 2) is agent.run


def test_two_agents_below_one_user_span_are_two_runs() -> None:
    feed = Feed()
    feed.start(1, NOBODY)
    one, other = run_of(feed.start(2, AGENT, 1)), run_of(feed.start(3, AGENT, 1))

    assert one is not other
    assert feed.whole(4, TOOL, 2) is one
    assert feed.whole(5, TOOL, 3) is other


def test_nested_agents_roll_up() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.start(2, TOOL, 1)
    inner = feed.start(3, AGENT, 2, name="invoke_agent helper")
    assert inner is not None
    step = feed.start(4, MODEL, 3)
    assert step is not None

    assert not inner.opened
    assert inner.run is step.run is run
    assert step.step is not None
    assert step.step.agent == "helper"
    inner_end = feed.end(3, AGENT)
    assert inner_end is not None
    assert inner_end.report is None, "only the outermost ends the run"


def test_without_an_agent_the_topmost_open_span_is_the_run() -> None:
    feed = Feed()
    feed.start(1, NOBODY)
    feed.start(2, NOBODY, 1)
    first = run_of(feed.start(3, MODEL, 2))
    feed.end(3, MODEL)

    assert first.kind == "root"
    assert feed.whole(4, TOOL, 1) is first
    ended = feed.end(1, NOBODY)
    assert ended is not None
    assert ended.report is not None
    assert (ended.report.model_calls, ended.report.tool_calls) == (1, 1)


def test_an_agent_below_a_run_of_its_root_is_a_run_of_its_own() -> None:
    feed = Feed()
    feed.start(1, NOBODY)
    loose = run_of(feed.start(2, MODEL, 1))
    agent = run_of(feed.start(3, AGENT, 1))

    assert agent is not loose
    assert feed.whole(4, MODEL, 3) is agent
    assert feed.whole(5, MODEL, 1) is loose


def test_a_remote_parent_makes_a_local_root() -> None:
    feed = Feed()
    agent = run_of(feed.start(2, AGENT, 99, remote=True))

    assert agent.root is feed.tracker.runs.spans.get(2)
    ended = feed.end(2, AGENT)
    assert ended is not None
    assert ended.report is not None


def test_a_step_may_come_after_its_parent_has_ended() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.start(2, NOBODY, 1)
    feed.end(2, NOBODY)

    assert feed.whole(3, TOOL, 2) is run


def test_what_comes_after_the_run_is_another() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.end(1, AGENT)

    assert feed.whole(2, TOOL, 1) is not run


def test_a_span_that_shows_what_it_is_at_its_end_counts_then() -> None:
    feed = Feed(Policy.none().with_limits(max_llm_calls=1))
    run = run_of(feed.start(1, AGENT))
    feed.start(2, NOBODY, 1)
    feed.start(3, NOBODY, 1)

    feed.end(2, MODEL)
    assert run.report().model_calls == 1
    late = feed.end(3, MODEL)
    assert late is not None
    assert late.tripped
    assert late.decision is not None
    assert [violation.phase for violation in late.decision.violations] == ["post"]
    assert run.report().model_calls == 2


def test_an_agent_that_shows_at_its_end_has_nothing_below_it_to_hold() -> None:
    feed = Feed()
    feed.start(1, NOBODY)

    assert feed.end(1, AGENT) is None
    assert feed.tracker.runs.open_runs() == ()


def test_a_span_that_started_before_the_guard_was_added_counts_at_its_end() -> None:
    feed = Feed()
    ended = feed.end(1, MODEL, gen_ai__usage__input_tokens=9)
    assert ended is not None

    assert ended.opened
    assert ended.report is not None, "it is its own run, and ends with itself"
    assert (ended.report.model_calls, ended.report.input_tokens) == (1, 9)
    assert feed.tracker.runs.open_runs() == ()
    assert feed.end(2, AGENT) is None
    assert feed.end(3, NOBODY) is None


@pytest.mark.parametrize(
    ("outer", "inner", "steps"),
    [
        (MODEL, MODEL, 1),
        (TOOL, TOOL, 1),
        (TOOL, {**TOOL, "gen_ai.tool.name": "other"}, 2),
        (TOOL, MODEL, 2),
        (MODEL, TOOL, 2),
    ],
)
def test_what_is_seen_twice_counts_once(
    outer: Mapping[str, object], inner: Mapping[str, object], steps: int
) -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.start(2, outer, 1)
    feed.start(3, NOBODY, 2)
    feed.whole(4, inner, 3)
    feed.end(3, NOBODY)
    feed.end(2, outer)

    assert run.report().steps == steps


def test_a_sub_agent_s_model_call_is_not_part_of_the_one_above_it() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.start(2, MODEL, 1)
    feed.start(3, AGENT, 2)
    feed.whole(4, MODEL, 3)

    assert run.report().model_calls == 2


def test_a_retry_below_an_ended_call_is_a_call_of_its_own() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.whole(2, MODEL, 1)
    feed.whole(3, MODEL, 2)

    assert run.report().model_calls == 2


# ------------------------------------------------------------------------------------ contexts


def in_fresh_context() -> contextvars.Context:
    """Return a copy of this context that belongs to no run."""
    context = contextvars.copy_context()
    context.run(CURRENT.set, None)
    return context


def test_a_parentless_step_joins_the_run_of_its_context() -> None:
    def scene() -> None:
        feed = Feed(live=True)
        run = run_of(feed.start(1, AGENT))

        assert feed.whole(2, TOOL) is run
        feed.end(1, AGENT)
        assert feed.whole(3, TOOL) is not run, "the context is left, the run is over"

    in_fresh_context().run(scene)


def test_a_copied_context_lets_go_of_a_run_that_ends_elsewhere() -> None:
    def scene() -> None:
        feed = Feed(live=True)
        run = run_of(feed.start(1, AGENT))
        copied = contextvars.copy_context()
        assert copied.run(feed.whole, 2, TOOL) is run
        feed.end(1, AGENT)

        assert copied.run(feed.tracker.runs.in_context) is None

    in_fresh_context().run(scene)


def test_a_context_does_not_take_an_agent_from_its_own_run() -> None:
    def scene() -> None:
        feed = Feed(live=True)
        one = run_of(feed.start(1, AGENT))

        assert run_of(feed.start(2, AGENT)) is not one

    in_fresh_context().run(scene)


def test_the_span_goes_before_the_context() -> None:
    def scene() -> None:
        feed = Feed(live=True)
        one, other = run_of(feed.start(1, AGENT)), run_of(feed.start(2, AGENT))

        assert feed.tracker.runs.in_context() is other
        assert feed.whole(3, TOOL, 1) is one

    in_fresh_context().run(scene)


def test_an_agent_of_the_context_goes_before_a_bare_root() -> None:
    def scene() -> None:
        feed = Feed(live=True)
        feed.start(1, NOBODY)
        feed.start(2, MODEL, 1)
        feed.end(2, MODEL)
        agent = run_of(feed.start(3, AGENT))

        assert feed.whole(4, TOOL, 1) is agent

    in_fresh_context().run(scene)


def test_recorded_spans_know_nothing_of_contexts() -> None:
    def scene() -> None:
        CURRENT.set(Slot("explicit"))
        feed = Feed()

        assert run_of(feed.start(1, AGENT)).kind == "agent"
        assert feed.whole(2, TOOL).kind == "root"

    in_fresh_context().run(scene)


class Live:
    """Stands for a span of the SDK: something that can be referred to weakly."""


def test_a_run_whose_span_nobody_can_end_any_more_is_left_by_its_context() -> None:
    def scene() -> None:
        feed = Feed(live=True)
        live = Live()
        run = run_of(feed.start(1, AGENT, live=live))
        feed.start(2, NOBODY, 1)
        assert feed.whole(3, TOOL) is run
        del live
        gc.collect()

        assert feed.tracker.runs.in_context() is None
        assert feed.whole(4, TOOL) is not run
        assert feed.whole(5, TOOL, 2) is not run
        assert [each for each, _ in feed.closed] == [run]

    in_fresh_context().run(scene)


def test_an_explicit_run_takes_every_span_of_its_context() -> None:
    def scene() -> None:
        slot = Slot("order-1")
        CURRENT.set(slot)
        feed = Feed(live=True)
        first = feed.start(1, AGENT)
        assert first is not None
        assert (first.opened, first.run.kind, first.run.id) == (True, "explicit", "order-1")
        feed.end(1, AGENT)

        assert not first.run.ended, "a block ends it, no span"
        assert feed.whole(2, AGENT) is feed.whole(3, TOOL) is first.run
        slot.explicit_id = None
        feed.tracker.runs.close(first.run)
        assert [run for run, _ in feed.closed] == [first.run]
        assert feed.whole(4, TOOL) is not first.run

    in_fresh_context().run(scene)


def test_two_trackers_share_an_explicit_slot() -> None:
    def scene() -> None:
        CURRENT.set(Slot("both"))
        one, other = Feed(live=True), Feed(live=True)
        runs = run_of(one.start(1, AGENT)), run_of(other.start(1, AGENT))

        assert runs[0] is not runs[1]
        assert one.tracker.runs.in_context() is runs[0]
        assert other.tracker.runs.in_context() is runs[1]

    in_fresh_context().run(scene)


# ------------------------------------------------------------------------- decisions and trips


def test_a_run_trips_once_and_what_follows_goes_on() -> None:
    feed = Feed(Policy.none().with_limits(max_tool_calls=1))
    run = run_of(feed.start(1, AGENT))
    verdicts = [feed.start(each, TOOL, 1) for each in (2, 3, 4)]

    assert [each.tripped for each in verdicts if each] == [False, True, False]
    assert [each.went_on for each in verdicts if each] == [False, False, True]
    assert run.report().tool_calls == 3, "nothing keeps a tool from running"
    assert run.steps_after_trip == 1
    assert run.trip is not None
    assert run.trip.span == (7, 3)


def test_a_prevented_model_call_is_not_counted() -> None:
    feed = Feed(Policy.none().with_limits(max_llm_calls=1), gated=True)
    run = run_of(feed.start(1, AGENT))
    feed.whole(2, MODEL, 1)
    refused = feed.start(3, MODEL, 1)
    assert refused is not None
    assert refused.tripped
    node = feed.tracker.runs.spans.get(3)
    assert node is not None
    assert node.refused

    node.prevented = True
    assert feed.end(3, MODEL) is None
    assert run.report().model_calls == 1
    assert not run.escaped


def test_a_refused_model_call_that_ran_is_counted_after_all() -> None:
    feed = Feed(Policy.none().with_limits(max_llm_calls=1), gated=True)
    run = run_of(feed.start(1, AGENT))
    feed.whole(2, MODEL, 1)
    feed.whole(3, MODEL, 1)
    feed.whole(4, MODEL, 1)

    assert run.report().model_calls == 3
    assert run.steps_after_trip == 1, "the call that tripped the run did not start after that"
    assert run.escaped


def test_a_trip_does_not_outlive_its_run() -> None:
    feed = Feed(Policy.none().with_limits(max_llm_calls=1))
    feed.start(1, NOBODY)
    for agent in (2, 5):
        run = run_of(feed.start(agent, AGENT, 1))
        assert run.trip is None
        feed.whole(agent + 1, MODEL, agent)
        feed.whole(agent + 2, MODEL, agent)
        assert run.trip is not None
        feed.end(agent, AGENT)


def test_a_framework_that_leaves_a_refused_run_s_span_open_starts_over() -> None:
    feed = Feed()
    left_open = run_of(feed.start(1, AGENT, name="Agent.run"))

    assert run_of(feed.start(2, AGENT, 1, name="Agent.run")) is left_open
    left_open.refused_requests = 1
    assert run_of(feed.start(3, AGENT, 1, name="Agent.other")) is left_open
    assert run_of(feed.start(4, AGENT, 1, name="Agent.run")) is not left_open


def test_a_report_outlives_the_counters_of_its_run() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.whole(2, TOOL, 1)
    ended = feed.end(1, AGENT)
    assert ended is not None

    assert ended.report is not None
    assert run.report() == ended.report
    assert run.report().tool_calls == 1
    run.heard = True
    assert run.report().status == "aborted"


# -------------------------------------------------------------------------- bounds and faults


def test_too_many_runs_end_the_oldest_and_tell_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_runs, "RUNS", 3)
    feed = Feed()
    opened = [run_of(feed.start(each, AGENT)) for each in range(1, 6)]

    assert feed.tracker.runs.open_runs() == tuple(opened[2:])
    assert [run for run, _ in feed.closed] == opened[:2]
    assert feed.tracker.runs.evicted()["runs"] == 2
    assert feed.end(1, AGENT) is None, "its end is no news any more"
    assert feed.whole(9, TOOL, 2) not in opened


def test_a_run_whose_span_is_forgotten_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "SPANS", 4)
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    for each in range(2, 5):
        feed.start(each, NOBODY, 1)
    assert not run.ended
    feed.start(5, NOBODY, 1)

    assert [each for each, _ in feed.closed] == [run]
    assert feed.tracker.runs.evicted() == {"spans": 1, "runs": 1, "ids": 0}
    assert feed.end(1, AGENT) is None


def test_model_calls_that_never_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "OPEN_CALLS", 4)
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    for each in range(2, 30):
        feed.start(each, MODEL, 1)

    assert [node.span_id for node in run.open_calls] == [26, 27, 28, 29]


def test_an_end_that_is_told_twice_counts_once() -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    feed.whole(2, TOOL, 1)
    assert feed.end(2, TOOL) is None

    assert run.report().tool_calls == 1
    feed.end(1, AGENT)
    assert feed.end(1, AGENT) is None
    assert feed.closed == []


def test_a_dialect_that_raises_costs_one_span_only(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed()
    run = run_of(feed.start(1, AGENT))
    read_step = tracker.read_step

    def broken(record: SpanRecord, *dialects: Any) -> Any:
        if "poison" in record.attributes:
            raise RuntimeError("a fault in a dialect")
        return read_step(record, *dialects)

    monkeypatch.setattr(tracker, "read_step", broken)
    poisoned = {**NOBODY, "poison": True}
    with pytest.raises(RuntimeError):
        feed.start(2, poisoned, 1)
    assert feed.whole(3, TOOL, 2) is run, "the span is in its place all the same"
    with pytest.raises(RuntimeError):
        feed.end(2, poisoned)
    with pytest.raises(RuntimeError):
        feed.end(1, {**AGENT, "poison": True})

    assert [each for each, _ in feed.closed] == [run], "its run has ended, and that is told"
    assert feed.tracker.runs.open_runs() == ()
    with pytest.raises(RuntimeError):
        feed.end(9, poisoned)


def alive(*kinds: type) -> int:
    gc.collect()
    return sum(type(each) in kinds for each in gc.get_objects())


def test_nothing_is_left_of_runs_that_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_tree, "ENDED", 10)
    before = alive(Run, Node, LoopGuard, RunState)
    states_before = alive(RunState)  # of examples in the documents that ran in this process

    def scene() -> None:
        for number in range(0, 1000, 10):
            feed.start(number + 1, AGENT)
            feed.start(number + 2, MODEL, number + 1)
            feed.whole(number + 3, TOOL, number + 1)
            feed.end(number + 2, MODEL)
            feed.end(number + 1, AGENT)

    feed = Feed(live=True)
    context = in_fresh_context()
    context.run(scene)

    assert feed.tracker.runs.open_runs() == ()
    # The ten spans that ended last are kept, with their four runs and the guards of those.
    assert alive(RunState) <= states_before
    assert alive(Run, Node, LoopGuard, RunState) - before <= 10 + 4 + 4


def test_a_forked_child_does_not_wait_for_a_lock_that_nobody_holds() -> None:
    assert hasattr(os, "fork")
    program = """
import os, threading
from opentelemetry.sdk.trace import TracerProvider
from otel_loopguard import LoopGuardSpanProcessor

provider = TracerProvider()
guard = LoopGuardSpanProcessor()
provider.add_span_processor(guard)
tracer = provider.get_tracer("t")
held, done = threading.Event(), threading.Event()

def hold():
    with guard._tracker.runs.lock:
        held.set()
        done.wait()

holder = threading.Thread(target=hold)
holder.start()
held.wait()
child = os.fork()
if child == 0:
    with tracer.start_as_current_span("invoke_agent a"), tracer.start_as_current_span("chat m"):
        pass
    os._exit(7)
_, status = os.waitpid(child, 0)
done.set()
holder.join()
print(os.waitstatus_to_exitcode(status))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )

    assert ran.stdout == "7\n", ran.stderr
