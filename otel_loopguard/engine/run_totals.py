"""What one run has done so far, in figures."""

from __future__ import annotations

from array import array

from otel_loopguard.decisions import RunReport, Stats, Taken, Violation
from otel_loopguard.detectors import Facts
from otel_loopguard.endings import Status, ending_of
from otel_loopguard.engine.open_steps import OpenStep, OpenSteps
from otel_loopguard.engine.outcomes import Outcomes
from otel_loopguard.steps import Step, StepKind

TRACED = 32
"""How many labels of past steps a report shows."""

SPENT = 32
"""How many model and tool calls back it is known what had been spent."""

TOOL_NAMES = 64
"""How many different tool names are counted."""


class RunTotals:
    """The figures of one run. Everything in it is bounded."""

    __slots__ = (
        "_are_tools",
        "_cost_at",
        "_cost_usd",
        "_input_tokens",
        "_last_tool",
        "_last_turn",
        "_model_calls",
        "_output_tokens",
        "_owners",
        "_results",
        "_spends",
        "_status",
        "_tokens_at",
        "_tool_calls",
        "_tools",
        "_trace",
        "last_s",
        "latest",
        "started_s",
        "steps",
    )

    def __init__(self, started_s: float) -> None:
        self.steps = 0
        self.started_s = self.last_s = started_s
        """When the run began, and when something last happened."""
        self.latest: OpenStep | None = None
        """The step that started last."""
        self._model_calls = self._tool_calls = 0
        self._input_tokens = self._output_tokens = 0
        self._cost_usd = 0.0
        self._status: Status = "running"
        self._last_turn = 0
        self._tools: dict[str, None] = {}
        self._last_tool = ""
        self._trace: list[str | tuple[str, str]] = []
        """The last steps; of tool calls, which are most of them, the name alone."""
        self._tokens_at: array[float] = array("d", bytes(8 * SPENT))
        self._cost_at: array[float] = array("d", bytes(8 * SPENT))
        """What had been spent when each of the last model and tool calls came back."""
        self._are_tools = bytearray(SPENT)
        self._owners: array[int] = array("q", bytes(8 * SPENT))
        """Whose they were."""
        self._results = 0
        self._spends = False

    @property
    def is_complete(self) -> bool:
        """Whether the last turn finished the run."""
        return self._status == "complete"

    def spent_in(self, kind: StepKind, steps: int, owner: str | None) -> tuple[int, float]:
        """Return the tokens and dollars that the run has spent in its last model or tool calls.

        That is since the one before them came back, counting those of one agent, or all for `None`;
        of a loop of more than `SPENT` calls, what the last of them took.
        """
        whose = None if owner is None else hash(owner)
        tokens, cost_usd = self._input_tokens + self._output_tokens, self._cost_usd
        left = steps
        for back in range(1, min(self._results, SPENT) + 1):
            place = (self._results - back) % SPENT
            own = whose is None or self._owners[place] == whose
            if own and self._are_tools[place] == (kind == "tool"):
                left -= 1
            if left < 0 or back == SPENT:
                return tokens - int(self._tokens_at[place]), cost_usd - self._cost_at[place]
        return tokens, cost_usd

    def spent_with_next(self, kind: StepKind, steps: int, owner: str | None) -> tuple[int, float]:
        """Return what `spent_in` does, where the last of the steps has not come back."""
        return self.spent_in(kind, steps - 1, owner)

    def begin(self, opened: OpenStep, now_s: float) -> None:
        """Count a step that happens; its number is how many there have been with it."""
        kind, name = opened.kind, opened.name
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
        self.steps = opened.number
        self.latest = opened
        if now_s > self.last_s:  # noqa: PLR1730 -- on the hot path `max` costs as much as a detector
            self.last_s = now_s
        self._trace.append(name if kind == "tool" else (kind, name))
        if len(self._trace) > TRACED:
            del self._trace[0]

    def name(self, opened: OpenStep, step: Step) -> None:
        """Learn the name of a step that started without one."""
        if opened.name or not step.name:
            return
        opened.name = step.name
        if opened.kind == "tool":
            self._last_tool = opened.name
            if len(self._tools) < TOOL_NAMES:
                self._tools[opened.name] = None

    def take_back(self, calls: int = 1) -> None:
        """Count so many executions of tools less: calls turned out to be none."""
        self._tool_calls -= calls

    def end(self, opened: OpenStep, step: Step, facts: Facts, now_s: float, *, ends: bool) -> None:
        """Add what came out of a step.

        How the run would end here is what its last turn says, or a tool that was called after it,
        or the framework's own way of answering; agents and other custom steps have no say in it.
        `ends` says that this step ends the run.
        """
        kind = opened.kind
        answers = kind == "custom" and bool(step.finish_reasons)
        if now_s > self.last_s:  # noqa: PLR1730 -- as above
            self.last_s = now_s
        if kind == "llm":
            self._last_turn = opened.number
        if self._spends or facts.input_tokens or facts.output_tokens or facts.cost_usd:
            self._spend(kind, facts)
        later = kind == "tool" and opened.number > self._last_turn
        if kind == "llm" or later or answers:
            failed = kind == "tool" and facts.failed
            self._status = "complete" if ends else "tool_error" if failed else ending_of(step)

    def _spend(self, kind: StepKind, facts: Facts) -> None:
        """Add what a step took; before the first that took anything there is nothing to know."""
        self._spends = True
        self._input_tokens += facts.input_tokens
        self._output_tokens += facts.output_tokens
        self._cost_usd += facts.cost_usd
        if kind in {"llm", "tool"}:
            place = self._results % SPENT
            self._tokens_at[place] = self._input_tokens + self._output_tokens
            self._cost_at[place] = self._cost_usd
            self._are_tools[place] = kind == "tool"
            self._owners[place] = hash(facts.agent)
            self._results += 1

    def taken(self) -> Taken:
        """Return what the run has taken so far."""
        spent = self._input_tokens, self._output_tokens, self._cost_usd
        return self.started_s, self.steps, *spent

    def stats(
        self,
        now_s: float,
        open_steps: OpenSteps,
        outcomes: Outcomes,
        failed_callbacks: int,
    ) -> Stats:
        """Return the counts so far."""
        return Stats(
            steps=self.steps,
            tool_calls=self._tool_calls,
            model_calls=self._model_calls,
            duration_s=now_s - self.started_s,
            distinct_tools=len(self._tools),
            repeated_calls=outcomes.repeated,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd,
            open_steps=len(open_steps),
            evicted_steps=open_steps.evicted,
            failed_callbacks=failed_callbacks + outcomes.failed_callbacks,
            calls_without_cost=outcomes.unpriced,
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
            trace=tuple(
                f"tool:{label}" if isinstance(label, str) else ":".join(label)
                for label in tuple(self._trace)
            ),
        )
