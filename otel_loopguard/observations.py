"""What is read of the guards at work when metrics are collected.

Several guards may tell one meter provider: what they say adds up. A meter asks the callback that
came first for all of them, and keeps it for ever, so a callback must keep no guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary, finalize

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider
from opentelemetry.util.types import AttributeValue

from otel_loopguard.agent_totals import AgentTotals
from otel_loopguard.bounded_names import BoundedNames
from otel_loopguard.contexts import NOWHERE
from otel_loopguard.forks import in_children
from otel_loopguard.going_on import GoingOn
from otel_loopguard.registry import metrics, names
from otel_loopguard.registry.metric import Metric


class Watched(Protocol):
    """The runs of one guard, as far as metrics tell of them."""

    agents: BoundedNames
    totals: AgentTotals

    def evicted(self) -> Mapping[str, int]:
        """Return how much was forgotten because a store was full, by store."""
        ...

    def going_on(self) -> Iterable[GoingOn]:
        """Return the runs that have not ended."""
        ...


Information: TypeAlias = Mapping[str, AttributeValue]
"""The attributes of a guard at work."""

Callback: TypeAlias = Callable[[CallbackOptions], list[Observation]]


class _AtWork(NamedTuple):
    provider: MeterProvider | None
    info: Information
    evicted: dict[str, int]
    """As it was read last: of a guard that is let go no more can be read."""
    farewell: finalize[..., Watched]


class _Carried:
    """What guards told one provider that are no more."""

    def __init__(self) -> None:
        self.agents = BoundedNames()
        """What agents are called to this provider, whichever guard tells of them."""
        self.totals = AgentTotals(self.agents)
        self.evicted: Counter[str] = Counter()


class _Left:
    """What is carried over of guards that are no more: a counter never goes back."""

    def __init__(self) -> None:
        self._by_provider: WeakKeyDictionary[MeterProvider, _Carried] = WeakKeyDictionary()
        in_children(self, _Left._leave_to_parent)

    def to(self, provider: MeterProvider) -> _Carried:
        """Return what is carried over to a provider."""
        carried = self._by_provider.get(provider)
        return self._by_provider.setdefault(provider, _Carried()) if carried is None else carried

    def _leave_to_parent(self) -> None:
        self._by_provider.clear()
        for each in _AT_WORK.values():
            each.evicted.clear()


_AT_WORK: WeakKeyDictionary[Watched, _AtWork] = WeakKeyDictionary()
"""The guards at work, each with where its metrics go and its attributes."""

_LEFT = _Left()


def begin(watched: Watched, provider: MeterProvider | None, info: Information) -> None:
    """Tell of a guard from here on."""
    evicted: dict[str, int] = {}
    farewell = finalize(watched, _keep, provider, watched.totals, evicted)
    farewell.atexit = False
    _AT_WORK[watched] = _AtWork(provider, info, evicted, farewell)


def leave(watched: Watched) -> None:
    """Tell of a guard no more, but what its runs have taken, and what it has forgotten."""
    left = _AT_WORK.pop(watched, None)
    if left is not None:
        left.evicted.update(watched.evicted())
        left.farewell()


def callbacks(provider: MeterProvider | None) -> Mapping[Metric, Callback]:
    """Return what answers for each metric that is read when metrics are collected."""
    answers: Mapping[Metric, Callable[[_Guards], Iterable[Observation]]] = {
        metrics.INFO: _info,
        metrics.EVICTIONS: _evictions,
        metrics.RUN_ACTIVE: _active,
        metrics.RUN_AGE_MAX: lambda guards: _highest(guards, lambda run: run.age_s),
        metrics.RUN_STEPS_MAX: lambda guards: _highest(guards, lambda run: run.steps),
        metrics.RUN_COST_MAX: lambda guards: _highest(guards, lambda run: run.cost_usd),
        metrics.STEPS: _steps,
        metrics.TOKEN_USAGE: _tokens,
        metrics.COST: _cost,
    }
    return {metric: _asked(provider, answer) for metric, answer in answers.items()}


def _asked(
    provider: MeterProvider | None, answer: Callable[[_Guards], Iterable[Observation]]
) -> Callback:
    return lambda _: list(answer(_Guards(provider)))


class _Guards:
    """The guards whose metrics go to one provider."""

    def __init__(self, provider: MeterProvider | None) -> None:
        one_for_all = get_meter_provider()
        provider = provider or one_for_all
        self._left = _LEFT.to(provider)
        self.at_work = [
            (watched, each)
            for watched, each in list(_AT_WORK.items())
            if (each.provider or one_for_all) is provider
        ]

    def agents(self) -> list[str]:
        """Return the agents that have runs, in the order in which they came."""
        return list({agent: None for each, _ in self.at_work for agent in each.agents.all()})

    def runs(self) -> Iterator[GoingOn]:
        return (run for each, _ in self.at_work for run in each.going_on())

    def totals(self) -> AgentTotals:
        """Return what all runs have taken, those of guards that are no more as well."""
        totals = AgentTotals(self._left.agents)
        for each in (self._left.totals, *(watched.totals for watched, _ in self.at_work)):
            totals.add(each)
        for agent in (*self.agents(), *totals.agents()):
            totals.announce(agent)
        return totals

    def evicted(self) -> Mapping[str, int]:
        """Return how much has been forgotten, by guards that are no more as well."""
        counts = Counter(self._left.evicted)
        for watched, each in self.at_work:
            each.evicted.update(watched.evicted())
            counts.update(each.evicted)
        return counts


def _keep(provider: MeterProvider | None, totals: AgentTotals, evicted: Mapping[str, int]) -> None:
    carried = _LEFT.to(provider or get_meter_provider())
    carried.totals.add(totals)
    carried.evicted.update(evicted)


def _seen(value: float, labels: Information) -> Observation:
    """Return what is seen of all agents, in no span: the one that collects made nothing of it."""
    return Observation(value, labels, NOWHERE)


def _info(guards: _Guards) -> Iterator[Observation]:
    return (_seen(1, each.info) for _, each in guards.at_work)


def _evictions(guards: _Guards) -> Iterator[Observation]:
    return (_seen(n, {names.STORE: store}) for store, n in guards.evicted().items())


def _active(guards: _Guards) -> Iterator[Observation]:
    counts = Counter((run.agent, run.tripped) for run in guards.runs())
    for agent in guards.agents():
        for tripped in (False, True):
            labels = {names.TRIPPED: tripped, names.GEN_AI_AGENT_NAME: agent}
            yield _seen(counts[agent, tripped], labels)


def _highest(guards: _Guards, figure: Callable[[GoingOn], float]) -> Iterator[Observation]:
    highest: dict[str, float] = dict.fromkeys(guards.agents(), 0)
    for run in guards.runs():
        highest[run.agent] = max(figure(run), highest.get(run.agent, 0))
    return (_seen(n, {names.GEN_AI_AGENT_NAME: agent}) for agent, n in highest.items())


def _steps(guards: _Guards) -> Iterator[Observation]:
    for (agent, kind), count in guards.totals().steps.items():
        yield _seen(count, {names.STEP_KIND: kind, names.GEN_AI_AGENT_NAME: agent})


def _tokens(guards: _Guards) -> Iterator[Observation]:
    for agent, spent in guards.totals().spent.items():
        for token_type, tokens in (("input", spent.input_tokens), ("output", spent.output_tokens)):
            labels = {names.GEN_AI_TOKEN_TYPE: token_type, names.GEN_AI_AGENT_NAME: agent}
            yield _seen(tokens, labels)


def _cost(guards: _Guards) -> Iterator[Observation]:
    for agent, spent in guards.totals().spent.items():
        yield _seen(spent.cost_usd, {names.GEN_AI_AGENT_NAME: agent})
