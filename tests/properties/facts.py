"""What a detector may be told, for hypothesis: few letters, so that things repeat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from otel_loopguard.detectors import Facts, Turn
from otel_loopguard.steps import StepKind

HISTORY = 8
"""How many of an agent's last calls are told."""


class Drawn(NamedTuple):
    """A step, before it is known what the run has seen before it."""

    kind: StepKind
    name: str
    arguments: int | None
    answer: int | None
    failed: bool
    pending: bool
    pause_s: int
    forgotten: bool
    """It counts as new although it is not, as what was seen long ago does."""
    refused: bool
    """It is not new although it looks so."""
    more: Facts
    """Whatever else is told."""


turns = st.builds(
    Turn,
    output=st.sampled_from([None, 1, 1, 2]),
    cut=st.booleans(),
    final=st.booleans(),
    asks=st.sampled_from([False, False, True]),
)
seldom = st.sampled_from([False] * 7 + [True])
tokens = st.sampled_from([0, 0, 0, 1, 2, 5])
others = st.builds(
    Facts,
    kind=st.just("tool"),
    name=st.just(""),
    elapsed_s=st.just(0),
    call=st.none(),
    agent=st.sampled_from(["", "x", "y"]),
    ahead=st.sampled_from([0, 0, 0, 1, 4]),
    silent_s=st.integers(0, 9),
    depth=st.integers(0, 9),
    nothing=seldom,
    short=seldom,
    familiar=seldom,
    near=seldom,
    batch=st.none() | st.integers(1, 3),
    unknown_tool=seldom,
    input_tokens=tokens,
    output_tokens=tokens,
    cost_usd=st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.25]),
    turn=turns,
    spoken=seldom,
)
steps = st.builds(
    Drawn,
    kind=st.sampled_from(["tool", "tool", "tool", "llm", "agent", "custom"]),
    name=st.sampled_from("aaab"),
    arguments=st.sampled_from([1, 1, 1, 2, None]),
    answer=st.sampled_from([1, 1, 2, None]) | st.integers(3, 9),
    failed=st.booleans(),
    pending=st.sampled_from([False, False, False, True]),
    pause_s=st.sampled_from([0, 0, 1, 30, 59, 60]),
    forgotten=seldom,
    refused=seldom,
    more=others,
)
never = st.just(value=False)
ordinary = st.builds(
    Facts,
    kind=st.just("tool"),
    name=st.just(""),
    agent=st.just(""),
    elapsed_s=st.just(0),
    call=st.none(),
    turn=turns,
)
calm_steps = st.builds(
    Drawn,
    kind=st.sampled_from(["tool"] * 9 + ["llm"]),
    name=st.sampled_from("aaab"),
    arguments=st.sampled_from([1, 1, 2, 3]),
    answer=st.integers(1, 99),
    failed=st.sampled_from([False] * 9 + [True]),
    pending=never,
    pause_s=st.just(1),
    forgotten=never,
    refused=never,
    more=st.one_of(*[ordinary] * 9, others),
)


def runs_of(item: st.SearchStrategy[Drawn], most: int) -> st.SearchStrategy[list[Drawn]]:
    """Return runs of any steps, and runs in which short parts come again and again."""
    part = st.tuples(st.lists(item, min_size=1, max_size=4), st.integers(1, most))
    return st.lists(item, max_size=30) | st.lists(part, max_size=5).map(
        lambda parts: [step for steps, times in parts for step in steps * times]
    )


runs, calm_runs = runs_of(steps, 6), runs_of(calm_steps, 3)
"""Runs of anything, and runs most of whose steps are plain successes."""


class Past:
    """What the agent has done before a step."""

    def __init__(self) -> None:
        self.calls: list[int | None] = []
        self.news: list[int] = []
        self.answers: dict[str, tuple[int | None, int | None]] = {}
        self.seen: dict[int, int] = {}
        self.agent: str | None = None

    def told(self, step: Drawn, facts: Facts, *, horizon: bool) -> Facts:
        """Return what is told of a step, now that the past is known."""
        if facts.kind != "tool":
            return facts
        seen_as = facts.call if facts.outcome is None else facts.outcome
        known = seen_as in self.seen and not (step.forgotten and horizon)
        novel = not known and not step.refused
        before, said = self.answers.get(facts.name, (None, None))
        unchanged = facts.result is not None and facts.result == said
        odd = facts.nothing or facts.short or facts.near or facts.familiar or facts.unknown_tool
        spends = facts.input_tokens or facts.output_tokens or facts.cost_usd
        success = facts.outcome is not None and not facts.failed
        return _replaced(
            facts,
            novel=novel,
            since=len(self.news) - self.seen[seen_as] if known and seen_as is not None else None,
            index=len(self.calls),
            news=self.news[-1] if self.news else None,
            history=tuple(self.calls[-HISTORY:]),
            before=before,
            unchanged=unchanged,
            plain=success
            and novel
            and not (step.forgotten or odd or spends or unchanged)
            and facts.agent == self.agent,
        )

    def add(self, facts: Facts) -> None:
        """Add a step."""
        self.agent = facts.agent
        if facts.kind != "tool":
            return
        seen_as = facts.call if facts.outcome is None else facts.outcome
        self.calls.append(facts.call)
        self.answers[facts.name] = facts.call, facts.result
        if facts.novel and not facts.failed:
            self.news.append(0 if seen_as is None else seen_as)
        if seen_as is not None:
            self.seen[seen_as] = len(self.news)


def facts_of(run: Iterable[Drawn], *, horizon: bool = True) -> list[Facts]:
    """Return what is told of the steps; without a horizon, nothing that was seen is forgotten."""
    told: list[Facts] = []
    past = Past()
    now_s = 0
    for step in run:
        now_s += step.pause_s
        facts = past.told(step, _ended(step, now_s), horizon=horizon)
        past.add(facts)
        told.append(facts)
    return told


def distinct(length: int, kind: StepKind) -> Sequence[Facts]:
    """Return steps none of which is like another."""
    return [
        Facts(
            kind,
            f"{number}",
            f"{number}",
            number * 1.0,
            number,
            outcome=-number,
            pending=False,
            failed=number % 3 == 0,
            novel=number % 2 == 0,
            since=None if number % 2 == 0 else number,
            result=number,
            error=number if number % 3 == 0 else None,
            nothing=number % 5 == 0,
            near=number % 7 == 0,
            batch=number,
            unknown_tool=number % 4 == 0,
            input_tokens=number,
            turn=Turn(output=number) if kind == "llm" and number % 3 else None,
        )
        for number in range(1, length + 1)
    ]


def _ended(step: Drawn, now_s: int) -> Facts:
    """Return what is told of a step by itself."""
    is_tool, more = step.kind == "tool", step.more
    call = hash((step.name, step.arguments)) if is_tool and step.arguments else None
    if step.pending:
        return _replaced(
            more,
            kind=step.kind,
            name=step.name,
            elapsed_s=now_s,
            call=call,
            input_tokens=0,
            output_tokens=0,
            cost_usd=0.0,
            turn=None,
            nothing=False,
            short=False,
            near=False,
            familiar=False,
            unknown_tool=False,
        )
    answered = is_tool and step.answer is not None
    return _replaced(
        more,
        kind=step.kind,
        name=step.name,
        elapsed_s=now_s,
        call=call,
        outcome=hash((call, step.failed, step.answer)) if call and answered else None,
        pending=False,
        failed=step.failed,
        result=hash((step.name, step.answer)) if answered and not step.failed else None,
        error=step.answer if step.failed else None,
        turn=more.turn if step.kind == "llm" and not step.failed else None,
    )


def _replaced(facts: Facts, **changes: object) -> Facts:
    return msgspec.structs.replace(facts, **changes)
