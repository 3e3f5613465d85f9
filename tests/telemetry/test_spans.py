"""What stands on the spans: the violation's event, and what is known about the run."""
# ruff: noqa: E501 -- snapshots are as wide as what they show

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from otel_loopguard import Policy, RunAborted, guarded_run
from tests._tracing import ONE_RULE, Labels, Traced, traced


def described(process: Traced) -> dict[str, Labels]:
    """Return what we wrote on spans, by the span's name."""
    return {
        span.name: attributes
        for span in process.spans
        if (attributes := {k: v for k, v in (span.attributes or {}).items() if "loopguard" in k})
    }


def places(process: Traced) -> list[tuple[str, str, str]]:
    """Return where each event of ours stands, with its rule and action."""
    return [
        (span, attributes["loopguard.rule"], attributes["loopguard.action"])
        for span, event, attributes in process.events()
        if event == "loopguard.violation"
    ]


@pytest.mark.parametrize("exporter", ["before the guard", "after the guard"])
def test_a_looping_agent(exporter: str) -> None:
    with traced(export=exporter == "before the guard") as process:
        process.guard(ONE_RULE)
        if exporter == "after the guard":
            process.export()
        with process.tracer.start_as_current_span("web request"), process.agent():
            process.work(5)
            with process.chat(asks=False):
                pass

        assert process.events() == snapshot(
            [
                (
                    "invoke_agent scout",
                    "loopguard.violation",
                    {
                        "loopguard.rule": "repeated_result",
                        "loopguard.reason": "REPEATED_RESULT_DETECTED",
                        "loopguard.action": "warn",
                        "loopguard.phase": "post",
                        "loopguard.count": 3,
                        "loopguard.threshold": 3,
                        "loopguard.message": "repeated_result: tool 'search' by agent 'scout' at step 6: 3 against a threshold of 3 (warning)",
                        "loopguard.step.number": 6,
                        "loopguard.wasted.steps": 2,
                        "loopguard.wasted.tokens": 30,
                        "loopguard.wasted.cost": 0.0,
                        "loopguard.run.id": "00000000000000000000000000000001-0000000000000002",
                        "gen_ai.tool.name": "search",
                        "gen_ai.agent.name": "scout",
                        "loopguard.step.trace_id": "00000000000000000000000000000001",
                        "loopguard.step.span_id": "0000000000000008",
                    },
                ),
                (
                    "invoke_agent scout",
                    "loopguard.violation",
                    {
                        "loopguard.rule": "repeated_result",
                        "loopguard.reason": "REPEATED_RESULT_DETECTED",
                        "loopguard.action": "abort",
                        "loopguard.phase": "post",
                        "loopguard.count": 5,
                        "loopguard.threshold": 5,
                        "loopguard.message": "repeated_result: tool 'search' by agent 'scout' at step 10: 5 against a threshold of 5 (stop)",
                        "loopguard.step.number": 10,
                        "loopguard.wasted.steps": 4,
                        "loopguard.wasted.tokens": 60,
                        "loopguard.wasted.cost": 0.0,
                        "loopguard.run.id": "00000000000000000000000000000001-0000000000000002",
                        "gen_ai.tool.name": "search",
                        "gen_ai.agent.name": "scout",
                        "loopguard.step.trace_id": "00000000000000000000000000000001",
                        "loopguard.step.span_id": "000000000000000c",
                    },
                ),
            ]
        )
        assert described(process) == snapshot(
            {
                "invoke_agent scout": {
                    "loopguard.run.id": "00000000000000000000000000000001-0000000000000002",
                    "loopguard.run.status": "complete",
                    "loopguard.run.steps": 11,
                    "loopguard.tripped": True,
                    "loopguard.rule": "repeated_result",
                    "loopguard.run.steps_after_trip": 1,
                }
            }
        )


def test_a_limit_that_is_broken_before_the_step_happens(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_calls_per_tool={"search": 1}))
    with process.agent():
        process.work(2)

    assert process.events() == snapshot(
        [
            (
                "invoke_agent scout",
                "loopguard.violation",
                {
                    "loopguard.rule": "tool_call_budget",
                    "loopguard.reason": "MAX_TOOL_CALLS_EXCEEDED",
                    "loopguard.action": "abort",
                    "loopguard.phase": "pre",
                    "loopguard.count": 2,
                    "loopguard.threshold": 1,
                    "loopguard.message": "tool_call_budget: tool 'search' by agent 'scout' at step 4: 2 against a threshold of 1 (stop)",
                    "loopguard.step.number": 4,
                    "loopguard.wasted.steps": 0,
                    "loopguard.wasted.tokens": 0,
                    "loopguard.wasted.cost": 0.0,
                    "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                    "gen_ai.tool.name": "search",
                    "gen_ai.agent.name": "scout",
                    "loopguard.step.trace_id": "00000000000000000000000000000001",
                    "loopguard.step.span_id": "0000000000000005",
                },
            )
        ]
    )
    assert described(process) == snapshot(
        {
            "invoke_agent scout": {
                "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                "loopguard.run.status": "running",
                "loopguard.run.steps": 4,
                "loopguard.tripped": True,
                "loopguard.rule": "tool_call_budget",
                "loopguard.run.steps_after_trip": 0,
            }
        }
    )


def test_a_healthy_run(process: Traced) -> None:
    process.guard()
    with process.agent():
        process.work(1)
        with process.chat(asks=False):
            pass

    assert process.events() == []
    assert described(process) == snapshot(
        {
            "invoke_agent scout": {
                "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                "loopguard.run.status": "complete",
                "loopguard.run.steps": 3,
                "loopguard.tripped": False,
            }
        }
    )


def test_a_remote_parent(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1))
    caller = SpanContext(0xCA11E4, 0xCA11, is_remote=True, trace_flags=TraceFlags(1))
    remote = trace.set_span_in_context(NonRecordingSpan(caller))
    with process.agent(context=remote):
        process.work(2)

    assert process.events() == snapshot(
        [
            (
                "invoke_agent scout",
                "loopguard.violation",
                {
                    "loopguard.rule": "tool_call_budget",
                    "loopguard.reason": "MAX_TOOL_CALLS_EXCEEDED",
                    "loopguard.action": "abort",
                    "loopguard.phase": "pre",
                    "loopguard.count": 2,
                    "loopguard.threshold": 1,
                    "loopguard.message": "tool_call_budget: tool 'search' by agent 'scout' at step 4: 2 against a threshold of 1 (stop)",
                    "loopguard.step.number": 4,
                    "loopguard.wasted.steps": 0,
                    "loopguard.wasted.tokens": 0,
                    "loopguard.wasted.cost": 0.0,
                    "loopguard.run.id": "00000000000000000000000000ca11e4-0000000000000001",
                    "gen_ai.tool.name": "search",
                    "gen_ai.agent.name": "scout",
                    "loopguard.step.trace_id": "00000000000000000000000000ca11e4",
                    "loopguard.step.span_id": "0000000000000005",
                },
            )
        ]
    )


def test_a_parent_that_has_ended(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1))
    with process.agent():
        with process.tracer.start_as_current_span("plan") as plan:
            pass
        below = trace.set_span_in_context(plan)
        for _ in range(2):
            with process.tool(context=below):
                pass

    assert places(process) == [("invoke_agent scout", "tool_call_budget", "abort")]


def test_the_nearest_ancestor_that_records_has_the_event(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1))
    with process.agent(), process.tracer.start_as_current_span("turn"):
        for _ in range(2):
            with process.tool():
                pass

    assert places(process) == [("turn", "tool_call_budget", "abort")]
    assert set(described(process)) == {"invoke_agent scout"}


def test_parentless_tool_spans(process: Traced) -> None:
    process.guard(ONE_RULE)
    root = trace.set_span_in_context(trace.INVALID_SPAN)
    with process.agent():
        for _ in range(5):
            with process.tool(context=root):
                pass

    assert places(process) == [
        ("invoke_agent scout", "repeated_result", "warn"),
        ("invoke_agent scout", "repeated_result", "abort"),
    ]


def test_where_nothing_else_records_the_span_itself_has_what_it_can_have(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1, max_duration_s=1e-9))
    with process.tool():
        pass

    # Found at its start, `pre`; what is found at its end finds no span that still records.
    assert [(span, rule) for span, rule, _ in places(process)] == [
        ("execute_tool search", "time_budget")
    ]
    assert process.total("loopguard.violations", rule="time_budget") == 1


def test_a_span_that_shows_what_it_is_at_its_end_has_no_event(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_duration_s=1e-9))
    with process.tracer.start_as_current_span("call") as span:
        span.set_attribute("gen_ai.operation.name", "chat")

    assert process.events() == []
    assert process.total("loopguard.violations", rule="time_budget") == 1


def test_nested_agents_roll_up(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=2))
    with process.agent("lead"):
        process.work(1)
        with process.tool("delegate"), process.agent("helper"):
            process.work(1)

    assert process.events() == snapshot(
        [
            (
                "invoke_agent helper",
                "loopguard.violation",
                {
                    "loopguard.rule": "tool_call_budget",
                    "loopguard.reason": "MAX_TOOL_CALLS_EXCEEDED",
                    "loopguard.action": "abort",
                    "loopguard.phase": "pre",
                    "loopguard.count": 3,
                    "loopguard.threshold": 2,
                    "loopguard.message": "tool_call_budget: tool 'search' by agent 'helper' at step 5: 3 against a threshold of 2 (stop)",
                    "loopguard.step.number": 5,
                    "loopguard.wasted.steps": 0,
                    "loopguard.wasted.tokens": 0,
                    "loopguard.wasted.cost": 0.0,
                    "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                    "gen_ai.tool.name": "search",
                    "gen_ai.agent.name": "helper",
                    "loopguard.step.trace_id": "00000000000000000000000000000001",
                    "loopguard.step.span_id": "0000000000000007",
                },
            )
        ]
    )
    assert described(process) == snapshot(
        {
            "invoke_agent lead": {
                "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                "loopguard.run.status": "running",
                "loopguard.run.steps": 5,
                "loopguard.tripped": True,
                "loopguard.rule": "tool_call_budget",
                "loopguard.run.steps_after_trip": 0,
            }
        }
    )


def test_a_call_that_runs_an_agent_and_shows_late_is_no_execution_of_a_tool(
    process: Traced,
) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=9))
    with (
        guarded_run() as run,
        process.agent("lead"),
        process.tracer.start_as_current_span("call") as call,
    ):
        with process.agent("helper"):
            process.work(1)
        call.set_attribute("gen_ai.operation.name", "execute_tool")

    assert run.report is not None
    assert run.report.tool_calls == 1, "the helper's own"


def test_two_agents_below_one_user_span_are_two_runs(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_tool_calls=1))
    with process.tracer.start_as_current_span("web request"):
        for name, turns in (("one", 1), ("other", 2)):
            with process.agent(name):
                process.work(turns)
                with process.chat(asks=False):
                    pass

    assert described(process) == snapshot(
        {
            "invoke_agent one": {
                "loopguard.run.id": "00000000000000000000000000000001-0000000000000002",
                "loopguard.run.status": "complete",
                "loopguard.run.steps": 3,
                "loopguard.tripped": False,
            },
            "invoke_agent other": {
                "loopguard.run.id": "00000000000000000000000000000001-0000000000000006",
                "loopguard.run.status": "complete",
                "loopguard.run.steps": 5,
                "loopguard.tripped": True,
                "loopguard.rule": "tool_call_budget",
                "loopguard.run.steps_after_trip": 1,
            },
        }
    )
    assert places(process) == [("invoke_agent other", "tool_call_budget", "abort")]


def test_a_model_call_that_is_refused(process: Traced) -> None:
    guard = process.guard(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
    with process.agent():
        with process.chat():
            assert guard.admit() is not None
        with process.chat(), pytest.raises(RunAborted):
            guard.admit()

    assert process.events() == snapshot(
        [
            (
                "invoke_agent scout",
                "loopguard.violation",
                {
                    "loopguard.rule": "llm_call_budget",
                    "loopguard.reason": "MAX_LLM_CALLS_EXCEEDED",
                    "loopguard.action": "abort",
                    "loopguard.phase": "pre",
                    "loopguard.count": 2,
                    "loopguard.threshold": 1,
                    "loopguard.message": "llm_call_budget: llm step by agent 'scout' at step 2: 2 against a threshold of 1 (stop)",
                    "loopguard.step.number": 2,
                    "loopguard.wasted.steps": 0,
                    "loopguard.wasted.tokens": 0,
                    "loopguard.wasted.cost": 0.0,
                    "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                    "gen_ai.agent.name": "scout",
                    "loopguard.step.trace_id": "00000000000000000000000000000001",
                    "loopguard.step.span_id": "0000000000000003",
                },
            )
        ]
    )
    assert described(process) == snapshot(
        {
            "invoke_agent scout": {
                "loopguard.run.id": "00000000000000000000000000000001-0000000000000001",
                "loopguard.run.status": "aborted",
                "loopguard.run.steps": 1,
                "loopguard.tripped": True,
                "loopguard.rule": "llm_call_budget",
                "loopguard.run.steps_after_trip": 0,
            }
        }
    )


def test_a_request_that_is_refused_where_it_has_no_span(process: Traced) -> None:
    guard = process.guard(Policy.none().with_limits(max_llm_calls=1), mode="enforce")
    with process.tracer.start_as_current_span("job"), guarded_run("r-1"):
        assert guard.admit() is not None
        with pytest.raises(RunAborted):
            guard.admit()

    assert process.events() == snapshot(
        [
            (
                "job",
                "loopguard.violation",
                {
                    "loopguard.rule": "llm_call_budget",
                    "loopguard.reason": "MAX_LLM_CALLS_EXCEEDED",
                    "loopguard.action": "abort",
                    "loopguard.phase": "pre",
                    "loopguard.count": 2,
                    "loopguard.threshold": 1,
                    "loopguard.message": "llm_call_budget: llm step at step 1: 2 against a threshold of 1 (stop)",
                    "loopguard.step.number": 1,
                    "loopguard.wasted.steps": 0,
                    "loopguard.wasted.tokens": 0,
                    "loopguard.wasted.cost": 0.0,
                    "loopguard.run.id": "r-1",
                },
            )
        ]
    )
    assert described(process) == snapshot(
        {
            "job": {
                "loopguard.run.id": "r-1",
                "loopguard.run.status": "aborted",
                "loopguard.run.steps": 0,
                "loopguard.tripped": True,
                "loopguard.rule": "llm_call_budget",
                "loopguard.run.steps_after_trip": 0,
            }
        }
    )


class RecordOnly(Sampler):
    """Records every span, and exports none."""

    def should_sample(self, *span: Any, **_named: Any) -> SamplingResult:
        _parent, _trace_id, _name, _kind, attributes, *_ = span
        return SamplingResult(Decision.RECORD_ONLY, attributes)

    def get_description(self) -> str:
        return "RecordOnly"


def test_spans_that_are_recorded_but_not_sampled() -> None:
    with traced(RecordOnly()) as process:
        process.guard(ONE_RULE)
        with process.agent() as agent:
            process.work(5)
            recorded: Any = agent
            events = [event.attributes["loopguard.action"] for event in recorded.events]
            attributes = dict(recorded.attributes)

        exemplars = [each for p in process.points("loopguard.violations") for each in p.exemplars]
        assert exemplars == [], "nobody could look the trace up"
        assert process.spans == ()
        assert events == ["warn", "abort"]
        assert attributes["loopguard.tripped"] is True
        assert process.total("loopguard.violations", rule="repeated_result") == 2


def test_spans_that_are_dropped() -> None:
    with traced(ALWAYS_OFF) as process:
        process.guard(mode="enforce")
        with process.agent():
            process.work(9)

        assert process.spans == ()
        assert process.total("loopguard.violations") == 0
        assert process.counts("loopguard.runs") == []


def test_observe_writes_the_same_and_stops_nothing() -> None:
    written: list[Any] = []
    for mode in ("observe", "enforce"):
        with traced() as process:
            process.guard(mode=mode)
            with process.agent():
                process.work(6)
            written.append((process.events(), described(process)))
            assert process.total("loopguard.aborts") == 0, (
                "no request was made that could be refused"
            )
    observed, enforced = written

    assert observed == enforced
