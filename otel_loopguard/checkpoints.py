"""Where code that makes calls asks the guard before it makes them. Nothing is ever raised.

Frameworks do so by way of their integrations. What they are told is the engine's verdict, and it is
written down like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec
from opentelemetry import trace

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.checks import ModelCheck, ToolCheck
from otel_loopguard.surroundings import run_in_baggage

if TYPE_CHECKING:
    from otel_loopguard.abort.aborted import Refusal, Refused
    from otel_loopguard.aside import Aside
    from otel_loopguard.reactions import Reactions
    from otel_loopguard.runs import Run
    from otel_loopguard.steps import Step
    from otel_loopguard.surroundings import Surroundings
    from otel_loopguard.tracker import RunTracker

_PLAIN = (str, int, float, bool, type(None))

_Answer = TypeVar("_Answer")


class Checkpoints:
    """What code that makes calls asks one guard.

    Args:
        tracker: whose runs the calls belong to.
        reactions: what is done about the verdicts.
        surroundings: knows whether the calling code is in a run.
        aside: the guard's own work, in which nothing is asked.
        fault: told of what goes wrong here.
        look: looks whether the policy file has changed.
        refusal: what calls are refused with.
        blocks: calls are refused; otherwise they are only told of.

    """

    def __init__(
        self,
        tracker: RunTracker,
        reactions: Reactions,
        surroundings: Surroundings,
        aside: Aside,
        fault: Callable[[Exception], object],
        *,
        look: Callable[[], object],
        refusal: Refusal,
        blocks: bool,
    ) -> None:
        self._tracker = tracker
        self._reactions = reactions
        self._surroundings = surroundings
        self._aside = aside
        self._fault = fault
        self._look = look
        self._refusal = refusal
        self._blocks = blocks
        self._farewells: dict[object, Callable[[], object]] = {}
        self.is_open = True
        """The guard has not been shut down."""
        self.scopes: frozenset[str] = frozenset()
        """Scopes of spans whose calls are asked about here too, and refused here if at all."""

    def model_call(self) -> Refused | None:
        """Return what a model call that is about to be made is refused with, if it is."""
        return self._asked(self._model_call)

    def tool_call(self, step: Step, teller: object) -> ToolCheck | None:
        """Tell of a tool call that is about to be made; `None` if it belongs to no run.

        The same `teller` tells of calls at once, another one may tell of the same call again.
        """
        return self._asked(partial(self._tool_call, step, teller))

    def refused(self, check: ToolCheck) -> Refused | None:
        """Return what a tool call is refused with, if it is."""
        run = check.refused_by
        return None if run is None else self._asked(partial(self._refused, run))

    def came_back(self, check: ToolCheck, result: object, error: str | None) -> None:
        """Tell what a tool call has come to."""
        check.leave()
        self._asked(partial(self._came_back, check, result, error))

    def hint(self) -> str | None:
        """Return what the model is to be told with the request that comes next, if anything."""
        return self._asked(self._hint) if self._blocks else None

    def leave_calls_here(self, scopes: frozenset[str]) -> None:
        """Refuse the calls that spans of these scopes show here, not where the spans start."""
        if self._blocks:
            self.scopes |= scopes

    def leave_calls_to_spans(self, scopes: frozenset[str]) -> None:
        """Refuse them where the spans start again."""
        self.scopes -= scopes

    def when_closed(self, whose: object, farewell: Callable[[], object] | None) -> None:
        """Have something called when the guard is shut down; with `None` no more."""
        self._farewells.pop(whose, None)
        if farewell is not None:
            self._farewells[whose] = farewell

    def close(self) -> None:
        """Answer no more: the guard is shut down."""
        self.is_open = False
        while self._farewells:
            self._farewells.popitem()[1]()

    def _asked(self, answer: Callable[[], _Answer]) -> _Answer | None:
        if self._aside.depth or not self.is_open:
            return None
        try:
            self._look()
            return answer()
        except Exception as error:  # noqa: BLE001 -- a fault of ours never blocks a call
            self._fault(error)
            return None

    def _model_call(self) -> Refused | None:
        if not self._blocks:
            return None
        check = ModelCheck(self._tracker, _here().span_id)
        if check.verdict is not None:
            self._reactions.act(check.verdict)
        run = check.refused_by
        if run is None:
            return None
        self._reactions.ladder.refused(run, run.refused_requests, by="integration")
        return self._refused(run)

    def _refused(self, run: Run) -> Refused:
        return self._refusal(run.report(), run.id)

    def _tool_call(self, step: Step, teller: object) -> ToolCheck | None:
        if not self._surroundings.hold_a_run():
            return None
        named, tracker = partial(run_in_baggage, None), self._tracker
        plain = msgspec.structs.replace(step, arguments=_plain(step.arguments))
        check = ToolCheck(tracker, _here(), plain, named, teller, can_block=self._blocks)
        if check.verdict is not None:
            verdict = msgspec.structs.replace(check.verdict, kept_by="integration")
            self._reactions.act(verdict)
        return check

    def _came_back(self, check: ToolCheck, result: object, error: str | None) -> None:
        verdict = check.came_back(_plain(result), error)
        if verdict is not None:
            self._reactions.act(verdict)

    def _hint(self) -> str | None:
        agent = self._surroundings.agent()
        for run in self._surroundings.runs():
            violation = None if run.has_sharers else run.hints.take(agent)
            if violation is not None:
                self._reactions.hinted(run, violation)
                return violation.hint(run.guard.policy.settings.steer)
        return None


def _plain(value: object) -> object:
    """Return a value as plain data, which runs no code of others when it is looked at."""
    if value is UNKNOWN or type(value) in _PLAIN:
        return value
    text = canonical(value)
    if text is UNKNOWN:
        return UNKNOWN
    try:
        return msgspec.json.decode(text)
    # There may be something in it that JSON has no form for.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return text.decode(errors="replace")


def _here() -> trace.SpanContext:
    return trace.get_current_span().get_span_context()
