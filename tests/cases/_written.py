"""Runs as OpenTelemetry spans: written by the real SDK, faulty where the report says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Span, Status, StatusCode

from otel_loopguard import telemetry
from otel_loopguard.policy import Policy
from otel_loopguard.replay import ReplayedRun, read_run, replay_file
from tests._tracing import Traced, traced
from tests.cases._reports import Case, Found

_EPOCH_S = 1_700_000_000
_COUNTED = ("tool", "llm", "custom")
_ROOT = "main"
ON_NO_SPAN = "O04"
"""The case whose spans are traces of their own, so that none records when another one ends."""
_ANSWER = "next_input_tool_result"
_CALL_ID = "call"
Attributes = dict[str, Any]


class Written:
    """A case while its spans are written, in the order and at the times of its steps."""

    def __init__(self, case: Case, process: Traced) -> None:
        self.now_s = 0.0
        self._case = case
        self._process = process
        self._order = 0
        self._open: dict[int, Span] = {}
        self._agents: dict[str, Span] = {}
        self._unasked: dict[str, Span] = {}
        """Agents that are no entries of `steps`: their spans end with the steps they are around."""
        self._index_of: dict[int, int] = {}
        self._spans: list[ReadableSpan] = []

    def write(self) -> None:
        """Write all spans."""
        top = _top_of(self._case.steps)
        if top is not None:
            self._start(top)
        elif not _has_no_agent(self._case.steps):
            self._add_agent(_ROOT, None)
        for moment in read_run(self._case.line).moments:
            self.now_s = moment.at_s
            if moment.position == top:
                continue
            if moment.is_end:
                self._end(moment.position)
            else:
                self._start(moment.position)
        for name in reversed(list(self._unasked)):
            self._unasked.pop(name).end(self._time_ns())
        if top is not None:
            self._end(top)

    def found(self) -> list[Found]:
        """Return what the live guard reported, by its log events: not all find a span to be on.

        Old versions of the API have none; there it is by the events on spans.
        """
        for thread in threading.enumerate():
            if thread.name == "loopguard-late":  # the timer may have seen it first, and tells of it
                thread.join(10)
        if telemetry._LOGS_HAVE_EVENTS:  # pyright: ignore[reportPrivateUsage]
            return [self._found(record.attributes or {}) for record in self._process.sink.records]
        if self._case.id == ON_NO_SPAN:
            pytest.skip("its spans have nothing around them that takes events")
        events = sorted(
            (event for span in self._spans for event in span.events),
            key=lambda event: event.timestamp,
        )
        return [self._found(event.attributes or {}) for event in events]

    def _found(self, said: Mapping[str, Any]) -> Found:
        # The end of an agent that is no entry of `steps` belongs to the last step before it.
        place = self._index_of.get(int(said["loopguard.step.span_id"], 16))
        number: int = said["loopguard.step.number"]
        return Found(
            said["loopguard.rule"],
            said["loopguard.action"],
            places_of(self._case)[number - 1] if place is None else place,
            said["loopguard.phase"],
        )

    def _start(self, position: int) -> None:
        step = self._case.steps[position]
        begin, _ = _WRITERS[step["type"]]
        name, attributes = begin(step)
        span = self._span(name, attributes, self._parent_of(step))
        self._open[position] = span
        self._index_of[span.get_span_context().span_id] = position + 1
        if step["type"] == "agent":
            self._agents[step.get("agent", _ROOT)] = span
        for agent in _contained(step):
            self._add_agent(agent, span)

    def _end(self, position: int) -> None:
        step = self._case.steps[position]
        if step.get("ended") is False:
            return
        for agent in _contained(step):
            self._unasked.pop(agent).end(self._time_ns())
        _, finish = _WRITERS[step["type"]]
        span = self._open.pop(position)
        span.set_attributes(finish(step))
        before: Mapping[str, Any] = (
            self._case.steps[position - 1].get("span", {}) if position else {}
        )
        if _ANSWER in before:
            span.set_attribute("gen_ai.input.messages", _asked_and_answered(before[_ANSWER]))
        if step.get("error"):
            what = step["result"] if step["error"] is True else step["error"]
            span.set_status(Status(StatusCode.ERROR, what))
        span.end(self._time_ns())

    def _parent_of(self, step: Mapping[str, Any]) -> Span | None:
        if "parent" in step.get("span", {}):
            return None
        if step["type"] == "agent":
            return self._agents.get(step.get("parent", _ROOT))
        agent = step.get("agent", _ROOT)
        if agent not in self._agents:
            self._add_agent(agent, self._agents[_ROOT])
        return self._agents[agent]

    def _add_agent(self, name: str, parent: Span | None) -> None:
        span = self._span(f"invoke_agent {name}", _agent(name), parent)
        self._agents[name] = self._unasked[name] = span

    def _span(self, name: str, attributes: Attributes, parent: Span | None) -> Span:
        above = Context() if parent is None else trace.set_span_in_context(parent)
        span = self._process.tracer.start_span(
            name, above, attributes=attributes, start_time=self._time_ns()
        )
        assert isinstance(span, ReadableSpan)
        self._spans.append(span)
        return span

    def _time_ns(self) -> int:
        """Return the case's own time; each moment is a little later than the one before."""
        self._order += 1
        return round((_EPOCH_S + self.now_s) * 1e9) + self._order * 1_000


@contextmanager
def written(case: Case, policy: Policy | None = None) -> Generator[tuple[Written, Traced]]:
    """Write a case under the eyes of a guard, whose clock shows the case's own time."""
    with traced() as process:
        work = Written(case, process)
        process.guard(case.ruling if policy is None else policy, clock=lambda: work.now_s)
        work.write()
        yield work, process


def recorded(spans: Sequence[ReadableSpan], policy: Policy, folder: Path) -> list[ReplayedRun]:
    """Replay spans as the recording that an exporter makes of them."""
    file = folder / "spans.jsonl"
    file.write_text("".join(MessageToJson(encode_spans([s]), indent=None) + "\n" for s in spans))
    found = list(replay_file(str(file), policy))
    return [each for each in found if isinstance(each, ReplayedRun)]


def found_in(run: ReplayedRun, case: Case) -> list[Found]:
    """Return a verdict on spans, at the entries of `steps` that the numbers of its steps mean."""
    places = places_of(case)
    return [Found(v.rule, v.action, places[v.step - 1], v.phase) for v in run.violations]


def places_of(case: Case) -> list[int]:
    """Return for each step of a run which entry of `steps` it is, from 1."""
    return [place for place, step in enumerate(case.steps, 1) if step["type"] in _COUNTED]


def _top_of(steps: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the entry that is the agent around all the others; the others tell nothing of it."""
    last = len(steps) - 1
    return last if steps[last]["type"] == "agent" and "agent" not in steps[last] else None


def _has_no_agent(steps: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether no agent span is to be written: the steps have their own, or lost it."""
    return all(step["type"] == "agent" or "parent" in step.get("span", {}) for step in steps)


def _contained(step: Mapping[str, Any]) -> list[str]:
    agents = step.get("contains", ())
    return [] if isinstance(agents, str) else list(agents)


def _agent(name: str) -> Attributes:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}


def _agent_starts(step: Mapping[str, Any]) -> tuple[str, Attributes]:
    return f"invoke_agent {step['name']}", _agent(step["name"])


def _tool_starts(step: Mapping[str, Any]) -> tuple[str, Attributes]:
    fault = step.get("span", {})
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": step["name"],
    }
    if "call_id" in step:
        attributes["gen_ai.tool.call.id"] = step["call_id"]
    if "conversation" in fault:
        attributes["gen_ai.conversation.id"] = fault["conversation"]
    if fault.get("arguments") != "absent" and fault.get("arguments_at") != "end_only":
        attributes |= _arguments(step)
    return fault.get("span_name", f"execute_tool {step['name']}"), attributes


def _tool_ends(step: Mapping[str, Any]) -> Attributes:
    fault = step.get("span", {})
    attributes: Attributes = {}
    if fault.get("arguments_at") == "end_only":
        attributes |= _arguments(step)
    if "result" in step:
        attributes["gen_ai.tool.call.result"] = json.dumps(step["result"])
    return attributes


def _arguments(step: Mapping[str, Any]) -> Attributes:
    return {"gen_ai.tool.call.arguments": json.dumps(step["arguments"])}


def _llm_starts(step: Mapping[str, Any]) -> tuple[str, Attributes]:
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": step["name"],
    }
    if "provider" in step:
        attributes["gen_ai.provider.name"] = step["provider"]
    return f"chat {step['name']}", attributes


def _llm_ends(step: Mapping[str, Any]) -> Attributes:
    attributes = _usage(step)
    if "finish_reason" in step:
        attributes["gen_ai.response.finish_reasons"] = [step["finish_reason"]]
    parts: list[Mapping[str, object]] = [
        {"type": "tool_call", "id": _CALL_ID, "name": call["name"], "arguments": call["arguments"]}
        if _ANSWER in step.get("span", {})
        else {"type": "tool_call", "name": call["name"], "arguments": call["arguments"]}
        for call in step.get("tool_calls", ())
    ]
    if "result" in step:
        parts.append({"type": "text", "content": step["result"]})
    if parts:
        attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    return attributes


def _asked_and_answered(answer: str) -> str:
    """Return what a model call is given after the call that it asked for was answered."""
    asked: dict[str, object] = {"type": "tool_call", "id": _CALL_ID, "name": "any", "arguments": {}}
    answered: dict[str, object] = {"type": "tool_call_response", "id": _CALL_ID, "response": answer}
    roles = {"assistant": asked, "tool": answered}
    return json.dumps([{"role": role, "parts": [part]} for role, part in roles.items()])


def _usage(step: Mapping[str, Any]) -> Attributes:
    names = {
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
        "cost_usd": "operation.cost",
    }
    return {names[field]: step[field] for field in names if field in step}


_Starts = Callable[[Mapping[str, Any]], tuple[str, Attributes]]
_Ends = Callable[[Mapping[str, Any]], Attributes]
_WRITERS: Mapping[str, tuple[_Starts, _Ends]] = {
    "tool": (_tool_starts, _tool_ends),
    "llm": (_llm_starts, _llm_ends),
    "agent": (_agent_starts, _usage),
}
