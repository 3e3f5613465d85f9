"""Which detectors are asked and told at which moment: worked out once for all runs alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from otel_loopguard.detectors import RULES, Detector
from otel_loopguard.detectors._base import Moment
from otel_loopguard.steps import StepKind

_PLANS = 512
"""Plans that are remembered; there is one for each policy and kind of step."""

TIMED = frozenset(("time_budget", "idle_run"))
"""The rules that can speak when nothing happens."""

Places: TypeAlias = tuple[int, ...]
"""Which of some detectors, by their place among them."""

Trait: TypeAlias = tuple[type[Detector], Moment, bool]
"""What a plan needs to know of a detector: its type, its moment, and whether it speaks on news."""


class Plan(NamedTuple):
    """The moments of a step of one kind, and whom each concerns."""

    early: Places
    """Asked before a step whose arguments are known."""
    telling_early: Places
    """Advance with a step of which nothing will ever be recorded."""
    early_blind: Places
    """Asked before a step whose arguments are not known yet."""
    early_seeing: Places
    """Asked before a tool call that is new, or where the results of those before it are known."""
    at_result: Places
    """Asked when a step comes back."""
    at_news: Places
    """Asked when a tool call came back with something plainly new."""
    late: Places
    """Asked when a step comes back whose arguments were not known before."""
    late_news: Places
    """Asked when such a step came back with something plainly new."""
    timed: Places
    """Asked when time passes and nothing happens."""
    at_start: Places
    """Advance with a step whose arguments are not known yet."""
    started: Places
    """Advance with a step whose arguments are known."""
    calls: Places
    """Advance once the arguments of a step are known, and no sooner."""
    moving: Places
    """Advance with a result."""
    stirred: Places
    """Those of them that advance with steps of other kinds too."""
    moving_late: Places
    """Advance with the result of a step whose arguments were not known before."""


def traits_of(detectors: Iterable[Detector]) -> tuple[Trait, ...]:
    """Return what a plan needs to know of these detectors."""
    return tuple((type(d), d.moment, d.on_news) for d in detectors)


@lru_cache(_PLANS)
def plan_of(traits: Sequence[Trait], kind: StepKind, rules: frozenset[str] | None = None) -> Plan:
    """Return the plan for steps of this kind; only these rules speak, all if `rules` is `None`."""
    told = [(n, *trait) for n, trait in enumerate(traits) if kind in trait[0].kinds]
    judging = [entry for entry in told if kind in entry[1].judges]
    asked = [entry for entry in judging if rules is None or entry[1].rule in rules]
    early = [entry for entry in asked if entry[2] != "result" or entry[1].foresees]
    return Plan(
        early=_places(early),
        telling_early=_places(
            early if rules is None else [entry for entry in told if entry[2] != "result"]
        ),
        early_blind=_places(entry for entry in early if entry[2] != "call"),
        early_seeing=_places(
            entry
            for entry in early
            if entry[2] != "result" or entry[1].rule not in RULES or entry[3]
        ),
        at_result=_places(entry for entry in asked if entry[2] == "result"),
        at_news=_places(entry for entry in asked if entry[2] == "result" and entry[3]),
        late=_places(entry for entry in asked if entry[2] != "start"),
        late_news=_places(
            entry for entry in asked if entry[2] == "call" or (entry[2] == "result" and entry[3])
        ),
        timed=_places(entry for entry in asked if entry[1].rule in TIMED),
        at_start=_places(entry for entry in told if entry[2] == "start"),
        started=_places(entry for entry in told if entry[2] != "result"),
        calls=_places(entry for entry in told if entry[2] == "call"),
        moving=_places(entry for entry in told if entry[2] == "result"),
        stirred=_places(
            entry for entry in told if entry[2] == "result" and len(entry[1].kinds) > 1
        ),
        moving_late=_places(entry for entry in told if entry[2] != "start"),
    )


def _places(entries: Iterable[tuple[int, type[Detector], Moment, bool]]) -> Places:
    return tuple(entry[0] for entry in entries)


class RuleSet:
    """Some detectors, arranged by when they are asked and when they advance: see `Plan`."""

    __slots__ = (
        "at_news",
        "at_result",
        "at_start",
        "awake",
        "calls",
        "compares",
        "early",
        "early_blind",
        "early_seeing",
        "late",
        "late_news",
        "moving",
        "moving_late",
        "started",
        "stirred",
        "telling_early",
        "timed",
    )

    def __init__(self, every: Sequence[Detector], kind: StepKind, *, compares: bool = True) -> None:
        self.compares = compares
        """Whether calls are compared with each other: not those that may be repeated."""
        self.arrange(every, kind)

    def arrange(
        self, every: Sequence[Detector], kind: StepKind, asked: frozenset[str] | None = None
    ) -> None:
        """Take these detectors instead; only rules that are `asked` speak, all for `None`."""
        plan = plan_of(traits_of(every), kind, asked)
        self.early = _picked(every, plan.early)
        same = plan.telling_early == plan.early
        self.telling_early = self.early if same else _picked(every, plan.telling_early)
        self.early_blind = _picked(every, plan.early_blind)
        self.early_seeing = _picked(every, plan.early_seeing)
        self.at_result = _picked(every, plan.at_result)
        self.at_news = _picked(every, plan.at_news)
        same = plan.late == plan.at_result
        self.late = self.at_result if same else _picked(every, plan.late)
        same = plan.late_news == plan.at_news
        self.late_news = self.at_news if same else _picked(every, plan.late_news)
        self.timed = _picked(every, plan.timed)
        self.at_start = _picked(every, plan.at_start)
        self.started = _picked(every, plan.started)
        self.calls = _picked(every, plan.calls)
        self.moving = self.awake = _picked(every, plan.moving)
        self.stirred = _picked(every, plan.stirred)
        same = plan.moving_late == plan.moving
        self.moving_late = self.moving if same else _picked(every, plan.moving_late)


def _picked(every: Sequence[Detector], places: Places) -> tuple[Detector, ...]:
    return tuple([every[place] for place in places]) if places else ()
