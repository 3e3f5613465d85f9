"""How much of a run is recorded: results of tool calls, model calls alone, or nothing."""

from __future__ import annotations

import msgspec

from otel_loopguard.detectors import Facts
from otel_loopguard.engine.open_steps import OpenStep
from otel_loopguard.engine.outcomes import Outcomes
from otel_loopguard.engine.rule_sets import RuleSets

WAITING = 32
"""How many tool calls wait for the first result of a run."""


class Sight:
    """What the application has shown so far, and the tool calls that wait for more. Bounded.

    Where nothing is ever recorded, each tool call counts at once as one whose result stays unknown.
    Where only model calls are, it counts so when the next of them begins. With the first result of
    a tool call, what was concluded without results is forgotten: calls count when they come back.
    """

    __slots__ = ("_concluded", "_waiting", "records_come", "results_come")

    def __init__(self) -> None:
        self.records_come = False
        """Some step has been recorded."""
        self.results_come = False
        """Some tool call has."""
        self._concluded = False
        """Tool calls were counted as ones whose results stay unknown."""
        self._waiting: list[tuple[OpenStep, Facts]] = []

    def do_without(self, opened: OpenStep, facts: Facts, outcomes: Outcomes) -> None:
        """While no tool call has come back, decide which of them count as if none would."""
        if opened.kind == "tool" and opened.rules.compares:
            if self.records_come:
                self._waiting.append((opened, facts))
                del self._waiting[:-WAITING]
            else:
                self._concluded = True
                outcomes.keep(facts, opened.owner)
        elif opened.kind == "llm" and self._waiting:
            self._concluded = True
            self._give_up(outcomes)

    def expect_results(self, rules: RuleSets, outcomes: Outcomes) -> None:
        """The first tool call has come back: forget what was concluded without results."""
        self.results_come = True
        self._waiting.clear()
        if self._concluded:
            rules.forget_results()
            outcomes.forget()

    def _give_up(self, outcomes: Outcomes) -> None:
        for opened, facts in self._waiting:
            rules, owner = opened.rules, opened.owner
            seen = facts.call is not None and outcomes.has(facts.call)
            known = msgspec.structs.replace(
                facts,
                novel=facts.novel and not seen,
                index=owner.results,
                news=owner.latest_news,
            )
            for detector in rules.moving_late if known.call is None else rules.moving:
                detector.commit(known)
            outcomes.keep(known, owner)
        self._waiting.clear()
