"""What may be begun: the loop's own limits, which nothing switches off, and a guard of its own."""

from __future__ import annotations

from otel_loopguard.agent_loop.endings import Ended, ended_by
from otel_loopguard.agent_loop.plan import Plan
from otel_loopguard.decisions import RunReport
from otel_loopguard.endings import Status
from otel_loopguard.guard import LoopGuard
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.steps import Step


class Bounds:
    """The limits and the guard of one run, and what it has used up of them."""

    __slots__ = ("_guard", "_plan", "_started_s", "_tokens", "_tool_calls", "steps")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._guard = LoopGuard(plan.policy, clock=plan.clock)
        self._started_s = plan.clock()
        self.steps = self._tool_calls = self._tokens = 0

    def refusal(self, step: Step) -> Ended | None:
        """Return why a step may not be begun; count it if it may."""
        plan = self._plan
        if self.is_late(plan.clock()):
            return Ended("deadline")
        if self._tokens > plan.max_tokens:
            return Ended("token_limit")
        if self.steps >= plan.max_steps:
            return Ended("step_limit")
        if step.kind == "tool" and self._tool_calls >= plan.max_tool_calls:
            return Ended("tool_limit")
        refused = ended_by(self._guard.check(step))
        if refused is None:
            self.steps += 1
            self._tool_calls += step.kind == "tool"
        return refused

    def heard(self, step: Step) -> Ended | None:
        """Take in what came out of a step; return why the run may not go on, if it may not."""
        return ended_by(self._guard.record(step))

    def spend(self, turn: ModelTurn) -> None:
        """Count the tokens of a turn."""
        self._tokens += turn.input_tokens + turn.output_tokens

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline."""
        return self._started_s + self._plan.deadline_s - self._plan.clock()

    def is_late(self, at_s: float) -> bool:
        """Whether the deadline has come at a moment, by the clock of the plan."""
        return self._started_s + self._plan.deadline_s - at_s <= 0

    def end(self, status: Status) -> RunReport:
        """Return the report on the run."""
        return self._guard.end(status)
