"""What the engine says: decisions on steps, violations of rules, reports on runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from otel_loopguard.detectors import Action
from otel_loopguard.endings import Status
from otel_loopguard.steps import SpanKey

Phase: TypeAlias = Literal["pre", "post"]
"""`pre`: found before the step happened; `post`: found by what came out of it."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule broken by a step, with its evidence."""

    rule: str
    reason: str
    action: Action
    phase: Phase
    step: int
    """The number of the step in its run, from 1."""
    count: float
    """How often it happened; seconds for `time_budget`."""
    threshold: float
    kind: str = ""
    tool: str = ""
    """The tool's name, for tool calls."""
    agent: str = ""
    wasted_steps: int = 0
    """Steps that did nothing but repeat."""
    wasted_tokens: int = 0
    """Tokens that the run has spent since the first of them."""
    wasted_cost_usd: float = 0.0
    """Dollars that the run has spent since the first of them, as far as costs are known."""
    span: SpanKey | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether steps show a pattern; a limit is about the run as a whole."""
        return self.reason.endswith("_DETECTED")

    @property
    def message(self) -> str:
        """One sentence for people."""
        subject = f"tool {self.tool!r}" if self.tool else f"{self.kind} step"
        by = f" by agent {self.agent!r}" if self.agent else ""
        verdict = "stop" if self.action == "abort" else "warning"
        return (
            f"{self.rule}: {subject}{by} at step {self.step}: {self.count:g} against a threshold "
            f"of {self.threshold:g} ({verdict})"
        )

    def hint(self, text: str) -> str:
        """Return a hint for the model: `text` with `{rule}`, `{subject}` and `{count}` in it."""
        subject = f"the tool {self.tool!r}" if self.tool else "your own answers"
        count = self.wasted_steps if self.rule == "stagnation" else self.count  # else a score
        return text.format(rule=self.rule, subject=subject, count=f"{count:g}")


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a step."""

    allowed: bool
    step_count: int
    """Steps of the run so far, this one included if it was allowed or happened."""
    refusal: Violation | None = None
    """Why the step is refused."""
    violations: tuple[Violation, ...] = ()
    """What this step showed for the first time: each rule once per level and run."""

    @property
    def action(self) -> Literal["allow", "warn", "abort"]:
        """The strictest thing said about the step."""
        if not self.allowed:
            return "abort"
        return "warn" if self.violations else "allow"

    @property
    def reason(self) -> str | None:
        """The reason of the refusal, such as `MAX_STEPS_EXCEEDED`."""
        return None if self.refusal is None else self.refusal.reason

    @property
    def rule(self) -> str | None:
        """The rule that refuses the step, such as `step_budget`."""
        return None if self.refusal is None else self.refusal.rule

    @property
    def details(self) -> Mapping[str, object]:
        """The refusal as a mapping; empty if there is none."""
        if self.refusal is None:
            return {}
        return {**msgspec.structs.asdict(self.refusal), "message": self.refusal.message}


Taken: TypeAlias = tuple[float, int, int, int, float]
"""What the run has taken so far: when it began, in seconds of the clock of its guard, its steps,
input tokens, output tokens and US dollars. It is plain, for it is made after each model call."""

NOTHING_TAKEN: Taken = (0.0, 0, 0, 0, 0.0)
"""Before a run begins, and after its end."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the run so far. Tokens are counts, costs US dollars, durations seconds."""

    steps: int
    tool_calls: int
    model_calls: int
    duration_s: float
    distinct_tools: int
    repeated_calls: int
    """Tool calls that brought nothing this agent had not had before."""
    input_tokens: int
    output_tokens: int
    cost_usd: float
    open_steps: int
    evicted_steps: int
    """Open steps forgotten because too many were open at once."""
    failed_callbacks: int
    """How often `on_violation` raised."""
    calls_without_cost: int = 0
    """Model calls that came back and whose cost is not known."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run."""

    status: Status
    rule: str | None
    """The rule of the trip: the first violation whose action is abort."""
    steps: int
    model_calls: int
    tool_calls: int
    """Executions of tools: calls that ran a sub-agent are left out, for its own ones count."""
    last_tool: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    duration_s: float
    violations: tuple[Violation, ...]
    open_call_ids: tuple[str, ...]
    """Ids of tool calls that started and never came back."""
    trace: tuple[str, ...]
    """The last steps as `kind:name`, without content."""
    stopped_with: str | None = None
    """The id of the run around this one whose trip stopped both; `None` unless that is why."""
    steps_after_trip: int = 0
    """Steps that started after the trip and that nothing kept from happening. Of runs that a
    processor watches; a `LoopGuard` by itself does not stop what it refuses."""
    after_trip_s: float = 0.0
    """How much of the duration came after the trip; counted as `steps_after_trip` is."""

    @property
    def trip(self) -> Violation | None:
        """The first violation whose action is abort."""
        return next((v for v in self.violations if v.action == "abort"), None)


class LoopGuardError(Exception):
    """A refused step, for loops that prefer an exception to a decision."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        """Say which rule refuses the step, on what evidence."""
        refusal = self.decision.refusal
        return "the step was allowed" if refusal is None else refusal.message
