"""The loop itself: what is to be done next, and what becomes of the run. It does nothing itself.

It yields attempts, to be made at the same time or one by one, and is sent what came of them, in
whatever order they came back. Whatever ends the run is raised as `Ended` where it becomes known.

All that is begun is asked about in `Bounds.refusal` before, so there is no way round the limits; a
turn that ends the run does so in `_turn`, before anything is added to the conversation.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar, cast

from msgspec.structs import replace

from otel_loopguard.abort.aborted import RunAborted, abort_of
from otel_loopguard.agent_loop.attempts import Attempt, ModelAttempt, Outcome, ToolAttempt
from otel_loopguard.agent_loop.bounds import Bounds
from otel_loopguard.agent_loop.calls import Calls
from otel_loopguard.agent_loop.endings import BY_RULES, STATUS_OF, UNUSABLE, Ended, first_of
from otel_loopguard.agent_loop.messages import Message, TurnRequest, described, text_of
from otel_loopguard.agent_loop.plan import Plan
from otel_loopguard.agent_loop.results import AgentResult
from otel_loopguard.agent_loop.tools import NotCalledError, label_of
from otel_loopguard.agent_loop.turns import identified, step_with
from otel_loopguard.endings import Status, ending_of
from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.steps import Step

_Returned = TypeVar("_Returned")

Work: TypeAlias = Generator[tuple[Attempt, ...], Sequence[Outcome], _Returned]
"""Yields what is to be attempted, and is sent what came of it."""

_TOO_LATE = "it came back after the deadline: what it returned is thrown away"


class Loop:
    """One run of the loop. `parallel` says whether calls of one turn are made at the same time."""

    def __init__(self, plan: Plan, *, parallel: bool) -> None:
        self._plan = plan
        self._parallel = parallel
        self._bounds = Bounds(plan)
        self._history = list(plan.messages)
        self._calls = Calls()
        self._batch = ""
        self._last_turn: ModelTurn | None = None
        # A run inside `except RunAborted` is not stopped by what is being handled around it.
        self._handled = abort_of(sys.exc_info()[1])

    def run(self) -> Work[AgentResult]:
        """Run to the end."""
        try:
            while True:
                yield from self._turn()
                yield from self._call()
        except Ended as ended:
            return self._result(ended)

    def _turn(self) -> Work[None]:
        """Ask the model for the next calls. Whatever else it answers ends the run here and now."""
        plan = self._plan
        turn, status, stop = yield from self._ask(plan.max_output_tokens)
        if status == "truncated" and plan.retry_output_tokens is not None:
            turn, status, stop = yield from self._ask(plan.retry_output_tokens)
        if status in UNUSABLE:
            raise Ended(UNUSABLE[status])
        if status == "complete":
            self._history.append(Message(role="assistant", text=turn.text))
            raise self._finished(turn.text)
        calls = identified(turn.calls)
        if not calls or len({call.call_id for call in calls}) < len(calls):
            raise Ended("invalid_action")
        if stop is not None:
            raise stop
        self._history.append(Message(role="assistant", text=turn.text, calls=calls))
        self._calls = Calls(calls)
        self._batch = f"turn {self._bounds.steps}"

    def _ask(self, max_output_tokens: int | None) -> Work[tuple[ModelTurn, Status, Ended | None]]:
        """Ask the model once; return its turn, how that ended, and why the run may not go on."""
        plan, bounds = self._plan, self._bounds
        offered = frozenset(plan.tools)
        step = Step(kind="llm", name=plan.model_name, agent=plan.agent, offered_tools=offered)
        refused = bounds.refusal(step)
        if refused is not None:
            raise refused
        request = TurnRequest(
            messages=tuple(self._history),
            tools=tuple(plan.tools.values()),
            max_output_tokens=max_output_tokens,
            step=bounds.steps,
            remaining_s=bounds.remaining_s,
        )
        [outcome] = yield (ModelAttempt(model=plan.model, request=request),)
        if outcome.error is not None:
            bounds.heard(replace(step, error=described(outcome.error)))
            raise self._stop_in(outcome.error) or Ended("provider_error", error=outcome.error)
        turn = cast("ModelTurn", outcome.value)
        answered = step_with(step, turn)
        bounds.spend(turn)
        stop = bounds.heard(answered)
        if bounds.is_late(outcome.at_s):
            raise Ended("deadline")
        self._last_turn = turn
        return turn, ending_of(answered), stop

    def _call(self) -> Work[None]:
        """Make the calls of a turn, and those that failed for a time only once more at the end."""
        calls = self._calls
        stop: Ended | None = None
        while calls.waiting and stop is None:
            begun, refused = self._begun(calls.waiting if self._parallel else calls.waiting[:1])
            del calls.waiting[: len(begun)]
            outcomes: Sequence[Outcome] = (yield begun) if begun else ()
            # All of it is taken in before any of it ends the run.
            ends = [end for outcome in outcomes for end in self._heard(outcome)]
            stop = first_of(ends) if ends else refused
            if ends and stop is not None and not stop.is_by_rule:
                raise stop
        self._history += calls.close()
        for call_id in calls.finished(self._plan.tools):
            raise self._finished(calls.returned[call_id])
        if stop is not None:
            raise stop

    def _begun(self, waiting: Sequence[str]) -> tuple[tuple[Attempt, ...], Ended | None]:
        """Return attempts for those calls that may be made, and why the others may not."""
        begun: list[Attempt] = []
        for call_id in waiting:
            refused = self._bounds.refusal(self._step_of(call_id))
            if refused is not None:
                return tuple(begun), refused
            begun.append(ToolAttempt(call=self._calls[call_id], tools=self._plan.tools))
        return tuple(begun), None

    def _heard(self, outcome: Outcome) -> list[Ended]:
        """Take in what a call has come to; return why the run may not go on."""
        calls, call_id, error = self._calls, outcome.call_id, outcome.error
        step = self._step_of(call_id)
        if error is None:
            by_rule = self._bounds.heard(replace(step, result=outcome.value))
            end = Ended("deadline") if self._bounds.is_late(outcome.at_s) else None
            if end is None:
                calls.succeed(call_id, outcome.value, text_of(outcome.value))
            else:
                calls.fail(call_id, _TOO_LATE)
        else:
            by_rule = self._bounds.heard(replace(step, error=described(error)))
            calls.fail(call_id, described(error))
            end = self._stop_in(error)
            by_tool = None if isinstance(error, NotCalledError) else error
            if end is None and isinstance(by_tool, self._plan.fatal):
                end = Ended("tool_error", error=error)
            if isinstance(by_tool, self._plan.temporary):
                calls.retry(call_id)
        return [each for each in (end, by_rule) if each is not None]

    def _finished(self, output: object) -> Ended:
        """Return the ending of a run that has come to something."""
        try:
            if not self._plan.accepts(output):
                return Ended("invalid_result")
        except Exception as error:  # noqa: BLE001 -- whatever it raises, it does not accept it
            return self._stop_in(error) or Ended("invalid_result", error=error)
        return Ended("complete", output=output)

    def _stop_in(self, error: Exception) -> Ended | None:
        """Return the ending if a guard around this run has stopped it, and raised so."""
        aborted = abort_of(error)
        is_news = aborted is not None and aborted is not self._handled
        return Ended("aborted", error=error, aborted=aborted) if is_news else None

    def _step_of(self, call_id: str) -> Step:
        call, agent = self._calls[call_id], self._plan.agent
        return Step(
            kind="tool",
            name=label_of(call.name, self._plan.tools),
            arguments=call.arguments,
            call_id=call_id,
            agent=agent,
            batch=self._batch,
        )

    def _result(self, ended: Ended) -> AgentResult:
        report = self._bounds.end(STATUS_OF[ended.ending])
        stopped = RunAborted(report) if ended.ending in BY_RULES else None
        return AgentResult(
            ending=ended.ending,
            output=ended.output,
            report=report,
            history=(*self._history, *self._calls.close()),
            last_turn=self._last_turn,
            error=ended.error,
            aborted=ended.aborted or stopped,
        )
