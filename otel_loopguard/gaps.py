"""What the steps of one run did not show: counted while it goes on, told when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.steps import Step, StepKind

Gap: TypeAlias = Literal["arguments", "result", "usage", "requested_calls", "tool_span"]

KINDS: dict[Gap, StepKind] = {
    "arguments": "tool",
    "result": "tool",
    "usage": "llm",
    "requested_calls": "llm",
    "tool_span": "tool",
}
"""The steps that each may be missing on."""


class Gaps:
    """How many steps of a run have come back without what the rules look at."""

    __slots__ = ("arguments", "requested_calls", "result", "tool_span", "usage")

    def __init__(self) -> None:
        self.arguments = 0
        self.result = 0
        """Calls that failed are not meant: they have an error instead."""
        self.usage = 0
        """Nor are model calls that did."""
        self.requested_calls = 0
        """Answers of which it is not known which calls they ask for, if any."""
        self.tool_span = 0
        """Calls that were made and that no span shows, in a run without spans of tools; known at
        its end."""

    def take(self, step: Step) -> None:
        """Look at a step that has come back."""
        if step.kind == "tool":
            self.arguments += step.arguments is UNKNOWN
            self.result += step.result is UNKNOWN and step.error is None
        elif step.kind == "llm" and step.error is None:
            self.usage += step.input_tokens is None and step.output_tokens is None
            self.requested_calls += step.tool_calls is UNKNOWN

    def counts(self) -> Iterator[tuple[Gap, int]]:
        """Yield what was missing on how many steps; nothing that never was."""
        for gap in KINDS:
            count: int = getattr(self, gap)
            if count:
                yield gap, count
