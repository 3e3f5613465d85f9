"""Counts what the spans of one instrumentation show."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

import msgspec

from otel_loopguard.conversations import conversation_of
from otel_loopguard.dialects import HIDDEN, Dialects, read_input
from otel_loopguard.doctor.cutting import Lengths
from otel_loopguard.doctor.recognition import Recognition, recognition_of
from otel_loopguard.doctor.sightings import (
    AgentsSeen,
    ModelsSeen,
    Recognised,
    ScopeSeen,
    Sighting,
    ToolsSeen,
)
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import UNKNOWN, Step

_ASKING = frozenset({"tool_calls", "tool_call", "tool_use", "tool-calls", "function_call"})

_Counted = TypeVar("_Counted", bound=msgspec.Struct)


class Tally:
    """The counts of one scope."""

    def __init__(self, scope: str, dialects: Dialects) -> None:
        self._scope = scope
        self._dialects = dialects
        self._counts: Counter[str] = Counter()
        self._recognised: Counter[Recognition] = Counter()
        self._at_start: Counter[Recognition] = Counter()
        self._is_live = False
        self._lengths = Lengths()

    def take(self, sighting: Sighting, step: Step | None, *, is_part: bool) -> None:
        """Count a span: the step that the guard makes of it, `None` for a span that is no step."""
        record = sighting.record
        self._lengths.take(record)
        self._counts["spans"] += 1
        self._counts["conversations"] += conversation_of(record) is not None
        self._counts["redacted"] += _is_redacted(record)
        self._counts["full"] += sighting.is_full
        self._recognise(sighting)
        if step is None:
            self._counts["others"] += 1
        elif is_part:
            self._counts["parts"] += 1
        elif step.kind == "tool":
            self._tool(step)
            known = sighting.at_start is not None and sighting.at_start.arguments
            self._counts["tools.arguments_at_start"] += known
        elif step.kind == "llm":
            self._model(step, record)
        elif step.kind == "agent":
            self._counts["agents.spans"] += 1
            self._counts["agents.named"] += bool(step.agent) or step.name != record.name
        else:
            self._counts["other_steps"] += 1

    def take_requested(self, step: Step, *, is_answer: bool) -> None:
        """Count a tool call that is known from messages alone, or what it came to."""
        if is_answer:
            self._counts["requested.results"] += step.result is not UNKNOWN
        else:
            self._counts["requested.calls"] += 1
            self._counts["requested.arguments"] += step.arguments is not UNKNOWN
            self._counts["requested.call_ids"] += step.call_id is not None

    def seen(self) -> ScopeSeen:
        """Return the counts."""
        cut, count = self._lengths.cut(), self._counts
        return ScopeSeen(
            scope=self._scope,
            spans=count["spans"],
            models=self._counted(ModelsSeen, "models"),
            tools=self._counted(ToolsSeen, "tools"),
            agents=self._counted(AgentsSeen, "agents"),
            requested=self._counted(ToolsSeen, "requested"),
            parts=count["parts"],
            other_steps=count["other_steps"],
            others=count["others"],
            recognised=tuple(self._ways()),
            conversations=count["conversations"],
            redacted=count["redacted"],
            cut=cut.values,
            cut_at=cut.length,
            full=count["full"],
        )

    def _recognise(self, sighting: Sighting) -> None:
        found, at_start = recognition_of(sighting.record, self._dialects), sighting.at_start
        self._is_live = self._is_live or at_start is not None
        if found is not None:
            self._recognised[found] += 1
            self._at_start[found] += at_start is not None and bool(at_start.dialect)

    def _ways(self) -> list[Recognised]:
        return [
            Recognised(
                dialect=found.dialect,
                by=found.by,
                spans=spans,
                at_start=self._at_start[found] if self._is_live else None,
            )
            for found, spans in self._recognised.most_common()
        ]

    def _tool(self, step: Step) -> None:
        self._counts["tools.calls"] += 1
        self._counts["tools.arguments"] += step.arguments is not UNKNOWN
        self._counts["tools.results"] += step.result is not UNKNOWN
        self._counts["tools.errors"] += step.error is not None
        self._counts["tools.call_ids"] += step.call_id is not None

    def _model(self, step: Step, record: SpanRecord) -> None:
        asks = step.tool_calls is not UNKNOWN and bool(step.tool_calls)
        facts = {
            "calls": True,
            "errors": step.error is not None,
            "usage": step.input_tokens is not None or step.output_tokens is not None,
            "output": step.output is not UNKNOWN,
            "requested_calls": step.tool_calls is not UNKNOWN,
            "asking": asks or not _ASKING.isdisjoint(step.finish_reasons),
            "input": read_input(record, self._dialects) is not None,
            "finish_reasons": bool(step.finish_reasons),
            "response_ids": bool(step.response_id),
        }
        for name, is_so in facts.items():
            self._counts[f"models.{name}"] += is_so

    def _counted(self, kind: type[_Counted], prefix: str) -> _Counted:
        counts = {name: self._counts[f"{prefix}.{name}"] for name in kind.__struct_fields__}
        return kind(**counts)


def _is_redacted(record: SpanRecord) -> bool:
    texts = (value for value in record.attributes.values() if isinstance(value, str))
    return any(text in HIDDEN for text in texts)
