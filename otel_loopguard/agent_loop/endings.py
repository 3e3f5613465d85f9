"""How a run of the loop ends, which ending wins, and what the report on the run calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from otel_loopguard.abort.aborted import RunAborted
from otel_loopguard.decisions import Decision
from otel_loopguard.endings import Status

Ending: TypeAlias = Literal[
    "aborted",
    "provider_error",
    "tool_error",
    "deadline",
    "filtered",
    "truncated",
    "invalid_action",
    "empty",
    "invalid_result",
    "complete",
    "repeated_call",
    "token_limit",
    "step_limit",
    "tool_limit",
]
"""In the order of precedence: where two hold at the same moment, the first one is said."""

STATUS_OF: Mapping[Ending, Status] = {
    "aborted": "aborted",
    "provider_error": "provider_error",
    "tool_error": "tool_error",
    "deadline": "aborted",
    "filtered": "filtered",
    "truncated": "truncated",
    "invalid_action": "aborted",
    "empty": "empty",
    "invalid_result": "complete",
    "complete": "complete",
    "repeated_call": "aborted",
    "token_limit": "aborted",
    "step_limit": "aborted",
    "tool_limit": "aborted",
}
"""What `RunReport.status` says. `aborted` is what the loop did not let go on; a result that was not
accepted is that of a model which had finished."""

UNUSABLE: Mapping[Status, Ending] = {
    "filtered": "filtered",
    "truncated": "truncated",
    "empty": "empty",
}
"""Turns that end the run although they finish nothing."""

_PLACES = {ending: place for place, ending in enumerate(STATUS_OF)}

BY_RULES: frozenset[Ending] = frozenset(("aborted", "repeated_call"))
"""What guards end a run as."""

REPETITION = frozenset(
    (
        "repeated_call",
        "repeated_result",
        "cyclic_calls",
        "revisited_results",
        "no_novelty",
        "unchanged_result",
        "stagnation",
        "repeated_error",
        "repeated_output",
        "similar_calls",
        "similar_results",
        "sweep",
        "repeated_call_limit",
        "same_tool",
        "loop_pattern",
        "agent_handoff_cycle",
    )
)
"""The rules that end a run as `repeated_call`; all others end it as `aborted`."""


class Ended(Exception):  # noqa: N818 -- no error: how the loop is left, from wherever that is known
    """The run is over."""

    def __init__(
        self,
        ending: Ending,
        *,
        output: object = None,
        error: Exception | None = None,
        aborted: RunAborted | None = None,
    ) -> None:
        super().__init__(ending)
        self.ending: Ending = ending
        self.output = output
        self.error = error
        self.aborted = aborted

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule of the loop's own guard ends the run, and nothing that was raised."""
        return self.ending in BY_RULES and self.aborted is None


def ended_by(decision: Decision) -> Ended | None:
    """Return the ending that a verdict of the loop's own guard means; `None` if it may go on."""
    if decision.rule is None:
        return None
    return Ended("repeated_call" if decision.rule in REPETITION else "aborted")


def first_of(ends: Sequence[Ended]) -> Ended:
    """Return the one that comes first: in the order of precedence, rules of its own guard last."""
    return min(ends, key=lambda end: (end.is_by_rule, _PLACES[end.ending]))
