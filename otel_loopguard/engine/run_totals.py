"""What one run has done so far, in figures."""

from __future__ import annotations

from collections import deque

from otel_loopguard.decisions import RunReport, Stats, Violation
from otel_loopguard.endings import Status, ending_of
from otel_loopguard.open_steps import OpenSteps
from otel_loopguard.steps import Step, StepKind

TRACED = 32
"""How many labels of past steps a report shows."""

TOOL_NAMES = 64
"""How many different tool names are counted."""


class RunTotals:
    """The figures of one run. Everything in it is bounded."""

    __slots__ = (
        "_cost_usd",
        "_input_tokens",
        "_last_tool",
        "_last_turn",
        "_model_calls",
        "_output_tokens",
        "_status",
        "_tool_calls",
        "_tools",
        "_trace",
        "last_s",
        "repeated_calls",
        "started_s",
        "steps",
    )

    def __init__(self, started_s: float) -> None:
        self.steps = 0
        self.repeated_calls = 0
        self.started_s = self.last_s = started_s
        """When the run began, and when something last happened."""
        self._model_calls = self._tool_calls = 0
        self._input_tokens = self._output_tokens = 0
        self._cost_usd = 0.0
        self._status: Status = "running"
        self._last_turn = 0
        self._tools: dict[str, None] = {}
        self._last_tool = ""
        self._trace: deque[tuple[str, str]] = deque(maxlen=TRACED)

    def begin(self, kind: StepKind, name: str, number: int, now_s: float) -> None:
        """Count a step that happens; `number` is how many there have been with it."""
        if kind == "tool":
            self._tool_calls += 1
            if name != self._last_tool:
                self._last_tool = name
                if len(self._tools) < TOOL_NAMES:
                    self._tools[name] = None
            self._status = "running"
        elif kind == "llm":
            self._model_calls += 1
            self._status = "running"
        self.steps = number
        if now_s > self.last_s:  # noqa: PLR1730 -- on the hot path `max` costs as much as a detector
            self.last_s = now_s
        self._trace.append((kind, name))

    def end(self, kind: StepKind, number: int, step: Step, now_s: float) -> None:
        """Add what came out of the step with that number.

        How the run would end here is what its last turn says, or a tool that was called after it;
        agents and custom steps have no say in it.
        """
        self._input_tokens += step.input_tokens or 0
        self._output_tokens += step.output_tokens or 0
        self._cost_usd += step.cost_usd or 0.0
        self.last_s = max(self.last_s, now_s)
        if kind == "llm":
            self._last_turn = number
        if kind == "llm" or (kind == "tool" and number > self._last_turn):
            self._status = ending_of(step)

    def stats(self, now_s: float, open_steps: OpenSteps, failed_callbacks: int) -> Stats:
        """Return the counts so far."""
        return Stats(
            steps=self.steps,
            tool_calls=self._tool_calls,
            model_calls=self._model_calls,
            duration_s=now_s - self.started_s,
            distinct_tools=len(self._tools),
            repeated_calls=self.repeated_calls,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd,
            open_steps=len(open_steps),
            evicted_steps=open_steps.evicted,
            failed_callbacks=failed_callbacks,
        )

    def report(
        self,
        now_s: float,
        status: Status | None,
        violations: tuple[Violation, ...],
        open_call_ids: tuple[str, ...],
    ) -> RunReport:
        """Return what became of the run; `status` overrides how its last step ended it."""
        return RunReport(
            status=status or self._status,
            rule=next((v.rule for v in violations if v.action == "abort"), None),
            steps=self.steps,
            model_calls=self._model_calls,
            tool_calls=self._tool_calls,
            last_tool=self._last_tool,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd,
            duration_s=now_s - self.started_s,
            violations=violations,
            open_call_ids=open_call_ids,
            trace=tuple(f"{kind}:{name}" for kind, name in tuple(self._trace)),
        )
