"""What the metrics say, from the start and after a trip."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from inline_snapshot import snapshot
from opentelemetry.sdk.metrics import MeterProvider

from otel_loopguard import (
    LoopGuardSpanProcessor,
    Policy,
    RunAborted,
    bounded_names,
    guarded_run,
)
from otel_loopguard.version import VERSION
from tests._tracing import ONE_RULE, Traced


def written(process: Traced) -> dict[str, list[str]]:
    """Return every series as one line, by metric; of a histogram only how many values it has."""
    data = process.reader.get_metrics_data()
    names = [
        metric.name
        for resource in (() if data is None else data.resource_metrics)
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    del data
    lines: dict[str, list[str]] = {}
    for name in names:
        for labels, value in process.counts(name):
            shown = " ".join(f"{k.removeprefix('loopguard.')}={v}" for k, v in labels.items())
            shown = shown.replace(f"version={VERSION}", "version=V")
            lines.setdefault(name, []).append(f"{shown}: {value:g}")
    return {name: sorted(each) for name, each in lines.items()}


def test_series_exist_at_zero_from_the_start(process: Traced) -> None:
    process.guard(abort_hooks=[print])

    assert written(process) == snapshot(
        {
            "loopguard.run.steps_after_trip": [": 0"],
            "loopguard.violations": [
                "rule=agent_handoff_cycle action=abort: 0",
                "rule=agent_handoff_cycle action=warn: 0",
                "rule=cyclic_calls action=abort: 0",
                "rule=cyclic_calls action=warn: 0",
                "rule=extra_turn action=abort: 0",
                "rule=extra_turn action=warn: 0",
                "rule=no_novelty action=abort: 0",
                "rule=no_novelty action=warn: 0",
                "rule=repeated_call action=abort: 0",
                "rule=repeated_call action=warn: 0",
                "rule=repeated_error action=abort: 0",
                "rule=repeated_error action=warn: 0",
                "rule=repeated_output action=abort: 0",
                "rule=repeated_output action=warn: 0",
                "rule=repeated_result action=abort: 0",
                "rule=repeated_result action=warn: 0",
                "rule=revisited_results action=abort: 0",
                "rule=revisited_results action=warn: 0",
                "rule=stagnation action=abort: 0",
                "rule=stagnation action=warn: 0",
                "rule=truncated_turns action=abort: 0",
                "rule=truncated_turns action=warn: 0",
                "rule=unchanged_result action=abort: 0",
                "rule=unchanged_result action=warn: 0",
                "rule=unknown_tool action=abort: 0",
                "rule=unknown_tool action=warn: 0",
            ],
            "loopguard.gaps": [
                "gap=arguments step.kind=tool: 0",
                "gap=requested_calls step.kind=llm: 0",
                "gap=result step.kind=tool: 0",
                "gap=tool_span step.kind=tool: 0",
                "gap=usage step.kind=llm: 0",
            ],
            "loopguard.abort.requests": [
                "abort.hook=cancel: 0",
                "abort.hook=gate: 0",
                "abort.hook=integration: 0",
                "abort.hook=print: 0",
                "abort.hook=veto: 0",
            ],
            "loopguard.aborts": [
                "abort.hook=cancel abort.result=failed: 0",
                "abort.hook=cancel abort.result=ok: 0",
                "abort.hook=cancel abort.result=timeout: 0",
                "abort.hook=gate abort.result=failed: 0",
                "abort.hook=gate abort.result=ok: 0",
                "abort.hook=gate abort.result=timeout: 0",
                "abort.hook=integration abort.result=failed: 0",
                "abort.hook=integration abort.result=ok: 0",
                "abort.hook=integration abort.result=timeout: 0",
                "abort.hook=print abort.result=failed: 0",
                "abort.hook=print abort.result=ok: 0",
                "abort.hook=print abort.result=timeout: 0",
                "abort.hook=veto abort.result=failed: 0",
                "abort.hook=veto abort.result=ok: 0",
                "abort.hook=veto abort.result=timeout: 0",
            ],
            "loopguard.info": ["version=V mode=enforce: 1"],
            "loopguard.evictions": ["store=ids: 0", "store=runs: 0", "store=spans: 0"],
        }
    )


def test_after_a_trip(process: Traced) -> None:
    process.guard(ONE_RULE.with_limits(max_llm_calls=5))
    with process.tracer.start_as_current_span("web request"), process.agent():
        process.work(6)

    assert written(process) == snapshot(
        {
            "loopguard.run.steps_after_trip": [": 0", "gen_ai.agent.name=scout: 2"],
            "loopguard.violations": [
                "rule=llm_call_budget action=abort gen_ai.agent.name=scout: 1",
                "rule=llm_call_budget action=abort: 0",
                "rule=llm_call_budget action=warn gen_ai.agent.name=scout: 0",
                "rule=llm_call_budget action=warn: 0",
                "rule=repeated_result action=abort gen_ai.agent.name=scout: 1",
                "rule=repeated_result action=abort: 0",
                "rule=repeated_result action=warn gen_ai.agent.name=scout: 1",
                "rule=repeated_result action=warn: 0",
            ],
            "loopguard.gaps": [
                "gap=arguments step.kind=tool gen_ai.agent.name=scout: 0",
                "gap=arguments step.kind=tool: 0",
                "gap=requested_calls step.kind=llm gen_ai.agent.name=scout: 0",
                "gap=requested_calls step.kind=llm: 0",
                "gap=result step.kind=tool gen_ai.agent.name=scout: 0",
                "gap=result step.kind=tool: 0",
                "gap=tool_span step.kind=tool gen_ai.agent.name=scout: 0",
                "gap=tool_span step.kind=tool: 0",
                "gap=usage step.kind=llm gen_ai.agent.name=scout: 0",
                "gap=usage step.kind=llm: 0",
            ],
            "loopguard.run.active": [
                "tripped=False gen_ai.agent.name=scout: 0",
                "tripped=True gen_ai.agent.name=scout: 0",
            ],
            "loopguard.guard.duration": ["callback=end: 1", "callback=start: 1"],
            "loopguard.violations.by_tool": [
                "rule=repeated_result action=abort gen_ai.tool.name=search: 1",
                "rule=repeated_result action=warn gen_ai.tool.name=search: 1",
            ],
            "loopguard.runs": ["gen_ai.agent.name=scout run.status=running tripped=True: 1"],
            "loopguard.run.steps": ["gen_ai.agent.name=scout: 1"],
            "loopguard.run.duration": ["gen_ai.agent.name=scout: 1"],
            "loopguard.run.duration_after_trip": ["gen_ai.agent.name=scout: 1"],
            "loopguard.run.token.usage": [
                "gen_ai.agent.name=scout gen_ai.token.type=input: 1",
                "gen_ai.agent.name=scout gen_ai.token.type=output: 1",
            ],
            "loopguard.info": ["version=V mode=observe: 1"],
            "loopguard.evictions": ["store=ids: 0", "store=runs: 0", "store=spans: 0"],
            "loopguard.run.age.max": ["gen_ai.agent.name=scout: 0"],
            "loopguard.run.steps.max": ["gen_ai.agent.name=scout: 0"],
            "loopguard.run.cost.max": ["gen_ai.agent.name=scout: 0"],
            "loopguard.steps": [
                "step.kind=llm gen_ai.agent.name=scout: 6",
                "step.kind=tool gen_ai.agent.name=scout: 6",
            ],
            "loopguard.token.usage": [
                "gen_ai.token.type=input gen_ai.agent.name=scout: 60",
                "gen_ai.token.type=output gen_ai.agent.name=scout: 30",
            ],
            "loopguard.cost": ["gen_ai.agent.name=scout: 0"],
        }
    )


def test_units_and_kinds(process: Traced) -> None:
    guard = process.guard(Policy(max_llm_calls=1), mode="enforce")

    def agent() -> None:
        with guarded_run(), process.agent():
            while True:
                with process.chat():
                    allowed = guard.admit()
                    assert allowed is not None
                    allowed.over(failed=False)
                process.work(1)

    with pytest.raises(RunAborted):
        agent()
    guard._fault(ZeroDivisionError())  # pyright: ignore[reportPrivateUsage]

    data = process.reader.get_metrics_data()
    assert data is not None
    metrics = {
        metric.name: f"{type(metric.data).__name__} {metric.unit}"
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert metrics == snapshot(
        {
            "loopguard.run.steps_after_trip": "Sum {step}",
            "loopguard.violations": "Sum {violation}",
            "loopguard.gaps": "Sum {gap}",
            "loopguard.abort.requests": "Sum {request}",
            "loopguard.aborts": "Sum {abort}",
            "loopguard.run.active": "Sum {run}",
            "loopguard.abort.duration": "Histogram s",
            "loopguard.runs": "Sum {run}",
            "loopguard.run.steps": "Histogram {step}",
            "loopguard.run.duration": "Histogram s",
            "loopguard.run.duration_after_trip": "Histogram s",
            "loopguard.run.token.usage": "Histogram {token}",
            "loopguard.errors": "Sum {error}",
            "loopguard.info": "Gauge {guard}",
            "loopguard.evictions": "Sum {eviction}",
            "loopguard.run.age.max": "Gauge s",
            "loopguard.run.steps.max": "Gauge {step}",
            "loopguard.run.cost.max": "Gauge {USD}",
            "loopguard.steps": "Sum {step}",
            "loopguard.token.usage": "Sum {token}",
            "loopguard.cost": "Sum {USD}",
        }
    )


def test_tokens_are_counted_by_their_type(process: Traced) -> None:
    process.guard()
    with process.agent():
        with process.chat(tokens=(100, 7)):
            pass
        with process.chat(tokens=(250, 11), asks=False):
            pass

    sums = {
        p.attributes["gen_ai.token.type"]: p.sum
        for p in process.points("loopguard.run.token.usage")
    }
    assert sums == {"input": 350, "output": 18}


def test_exemplars_point_to_the_offending_span(process: Traced) -> None:
    process.guard(ONE_RULE)
    with process.agent():
        process.work(5)

    offending = [
        (span.context.trace_id, span.context.span_id)
        for span in process.spans
        if span.name == "execute_tool search" and span.context
    ]
    exemplars = [
        (point.attributes["loopguard.action"], (exemplar.trace_id, exemplar.span_id))
        for point in process.points("loopguard.violations", "loopguard.violations.by_tool")
        for exemplar in point.exemplars
    ]
    assert sorted(exemplars) == [*[("abort", offending[4])] * 2, *[("warn", offending[2])] * 2]


def test_names_that_never_end_become_one(process: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 3)
    process.guard(Policy.none().with_limits(max_calls_per_tool={f"t{n}": 1 for n in range(9)}))
    for number in range(9):
        with process.agent(f"a{number}"):
            for _ in range(2):
                with process.tool(f"t{number}"):
                    pass

    def names(metric: str, label: str) -> set[Any]:
        return {labels[label] for labels, _ in process.counts(metric) if label in labels}

    assert names("loopguard.violations.by_tool", "gen_ai.tool.name") == {"t0", "t1", "t2", "_OTHER"}
    for metric in ("loopguard.violations", "loopguard.runs", "loopguard.run.active"):
        assert names(metric, "gen_ai.agent.name") == {"a0", "a1", "a2", "_OTHER"}
    assert process.total("loopguard.violations", action="abort") == 9
    assert process.total("loopguard.run.active") == 0


def test_no_label_names_a_run_a_trace_or_content(process: Traced) -> None:
    process.guard()
    with guarded_run("run-0815"), process.agent():
        process.work(6)

    labels = {
        label for lines in written(process).values() for line in lines for label in line.split()
    }
    assert not [label for label in labels if "run-0815" in label or "0000" in label]


def test_runs_that_go_on_are_counted_up_and_down(process: Traced) -> None:
    process.guard()
    with process.agent(), guarded_run(), process.agent("inner"):
        assert process.total("loopguard.run.active") == 2
    assert process.total("loopguard.run.active") == 0
    assert process.total("loopguard.runs") == 2


@pytest.mark.parametrize("meters", ["of the process", "its own"])
def test_a_guard_that_nobody_has_is_let_go_of_and_told_of_no_more(
    process: Traced, meters: str
) -> None:
    given = process.meters if meters == "its own" else None
    guard = weakref.ref(LoopGuardSpanProcessor(mode="observe", meter_provider=given))
    gc.collect()

    assert guard() is None
    if given is not None:
        assert process.points("loopguard.info", "loopguard.evictions") == []


def test_each_guard_at_work_is_told_of_and_one_that_is_shut_down_is_not(process: Traced) -> None:
    def modes() -> list[str]:
        info = process.points("loopguard.info")
        return sorted(point.attributes["loopguard.mode"] for point in info)

    other = MeterProvider(shutdown_on_exit=False)
    elsewhere = LoopGuardSpanProcessor(mode="observe", meter_provider=other)
    first = process.guard(mode="observe")
    second = process.guard(mode="enforce")
    assert modes() == ["enforce", "observe"]
    assert {n for _, n in process.counts("loopguard.evictions")} == {0}
    first.shutdown()
    assert modes() == ["enforce"]
    second.shutdown()
    assert modes() == []
    elsewhere.shutdown()
