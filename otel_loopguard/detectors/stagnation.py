"""Evidence of a loop that adds up over the run."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import ClassVar

from otel_loopguard.detectors._base import Facts, Finding, Moment, Reach, judge, keep
from otel_loopguard.detectors._stagnation_classes import FAILED, WEIGHTS
from otel_loopguard.settings import Settings, Thresholds
from otel_loopguard.steps import StepKind

_NEVER = 1 << 30
_TRIES = ("tried_one_since", "tried_two_since", "tried_more_since")
_SEVERAL = 3
"""An error is the same old one after it has come this often."""

_PER_UNIT = 100
"""Scores are kept in hundredths, so that sums are exact."""


def _hundredths(weights: Mapping[str, float]) -> dict[str, int]:
    return {name: round(weight * _PER_UNIT) for name, weight in {**WEIGHTS, **weights}.items()}


_BUILT_IN = _hundredths({})


class Stagnation:
    """Evidence of a loop that adds up over the run.

    What it sees
        Each tool call of an agent falls into a class by what it brought: something new, the same
        as before, the same after something was done, a new answer to a known call. Each class has
        a weight for a loop or against it; the score is their sum, never below zero (Page's CUSUM).
        A warning comes at 15 points, an abort at 20.
    Why it matters
        Loops that no single pattern shows: reads spread over other calls, drifting arguments,
        two kinds of errors in turn. On 3,098 recorded successful runs the score alone would have
        stopped 2, a shell puzzle and an SQL puzzle.
    What it does not see
        Calls whose results are unknown, or always differ. Work that goes back to the same page
        again and again between short steps looks like a loop to it.
    """

    rule: ClassVar[str] = "stagnation"
    reason: ClassVar[str] = "STAGNATION_DETECTED"
    kinds: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    judges: ClassVar[frozenset[StepKind]] = frozenset(("tool",))
    reach: ClassVar[Reach] = "agent"
    foresees: ClassVar[bool] = False
    moment: Moment = "result"
    rests: bool = True

    __slots__ = (
        "_acted",
        "_answers",
        "_call",
        "_errors",
        "_fed",
        "_index",
        "_moved",
        "_outcome",
        "_score",
        "_thresholds",
        "_tried",
        "_weights",
        "on_news",
    )

    def __init__(self, thresholds: Thresholds, weights: Mapping[str, float]) -> None:
        self._thresholds = thresholds
        self._weights = _hundredths(weights) if weights else _BUILT_IN
        self.on_news = self._weights["novel"] > 0
        self._score = 0
        self._fed = 0
        """How many calls have added to the score since it was zero."""
        self._outcome: int | None = None
        self._call: int | None = None
        self._tried = self._moved = self._acted = _NEVER
        """How many new outcomes ago a new call succeeded, a known one was answered anew, and
        something was done."""
        self._answers: dict[int | None, int | None] = {}
        """The last short results, each with the call that it answered; `None` if several."""
        self._errors: dict[int | None, int] = {}
        """How often each error came since something new last succeeded."""
        self._index = -1
        """Which of the agent's calls was counted last."""

    @classmethod
    def of(cls, settings: Settings, /) -> Stagnation | None:
        """Make it if the rule is on."""
        if settings.lowest(cls.rule) == inf:
            return None
        return cls(settings.rules.get(cls.rule) or Thresholds(), settings.weights)

    def check(self, facts: Facts, /) -> Finding | None:
        """Judge the score to which this call would lead; only what adds to it is judged."""
        weight = 0 if facts.outcome is None else self._weights[self.classify(facts)]
        if weight <= 0:
            return None
        before = self._score_after(self._missed(facts))
        fed = self._fed if before else 0
        return judge(self.rule, self._thresholds, facts, (before + weight) / _PER_UNIT, fed + 1)

    def commit(self, facts: Facts, /) -> None:
        """Add what the call says; a call whose outcome is unknown says nothing."""
        self._catch_up(facts)
        if facts.outcome is None:
            return
        step_class = self.classify(facts)
        weight = self._weights[step_class]
        self._score = score = max(0, self._score + weight)
        self._fed = self._fed + (weight > 0) if score else 0
        if facts.novel:
            self._count_news(facts, acts=step_class.startswith("act"))
        if facts.failed:
            keep(self._errors, facts.error, self._errors.get(facts.error, 0) + 1)
        elif facts.short:
            only = self._answers.get(facts.result, facts.call) == facts.call
            keep(self._answers, facts.result, facts.call if only else None)
        self._outcome, self._call = facts.outcome, facts.call

    def classify(self, facts: Facts) -> str:
        """Return the class of a call whose outcome is known."""
        missed = self._missed(facts)
        step_class = self._class_of(facts, missed) if facts.novel else self._repeat(facts, missed)
        return step_class + FAILED if facts.failed else step_class

    def _class_of(self, facts: Facts, missed: int) -> str:
        if facts.failed:
            known = 0 if missed else self._errors.get(facts.error, 0)
            return "same_error" if known >= _SEVERAL else "error"
        if facts.familiar:
            last = facts.history[-1] if missed and facts.history else self._call
            return "poll" if facts.call == last else "watch"
        if not facts.short or facts.result not in self._answers:
            return "novel"
        return "nothing" if facts.nothing else "act_near" if facts.near else "act"

    def _repeat(self, facts: Facts, missed: int) -> str:
        since = facts.since or 0
        if facts.outcome == (facts.news if missed else self._outcome):
            return "again"
        if since == 0:
            return "nothing_since"
        if self._acted + missed <= since:
            return "acted_since"
        if not missed and self._tried > since:
            return "watched_since" if self._moved <= since else "idle_since"
        return self._tried_since(facts, since)

    def _tried_since(self, facts: Facts, since: int) -> str:
        if facts.short and self._answers.get(facts.result, facts.call) != facts.call:
            return "routine_since"
        if since < len(_TRIES) and facts.before is not None and facts.before != facts.call:
            return "returned_since"
        return _TRIES[min(since, len(_TRIES)) - 1]

    def _missed(self, facts: Facts) -> int:
        """Return how many plain successes there were that it was not told of."""
        return max(facts.index - self._index - 1, 0)

    def _score_after(self, missed: int) -> int:
        return max(0, self._score + missed * self._weights["novel"]) if missed else self._score

    def _catch_up(self, facts: Facts) -> None:
        missed, self._index = self._missed(facts), facts.index
        if missed:
            self._score = self._score_after(missed)
            self._fed = self._fed if self._score else 0
            self._tried, self._moved, self._acted = 1, self._moved + missed, self._acted + missed
            self._errors.clear()
            self._outcome = facts.news
            self._call = facts.history[-1] if facts.history else None

    def _count_news(self, facts: Facts, *, acts: bool) -> None:
        self._tried, self._moved, self._acted = self._tried + 1, self._moved + 1, self._acted + 1
        if facts.failed:
            return
        self._errors.clear()
        if facts.familiar:
            self._moved = 1
        else:
            self._tried = 1
        if acts:
            self._acted = 1
