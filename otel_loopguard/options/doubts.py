"""What there is to say of a policy that will not do what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import combinations

from otel_loopguard.detectors import DEFAULT_RULES
from otel_loopguard.options.errors import joined, quoted
from otel_loopguard.options.rules import RULES
from otel_loopguard.pricing import Pricing
from otel_loopguard.settings import Limits, Settings, Thresholds, ToolOptions

_NEVER = Thresholds()
_CLOSED = re.compile(r"\[(?:!.|[^!])[^]]*\]", re.DOTALL)
"""Brackets as `fnmatch` reads them: a `]` right after the opening one does not close it."""


def warnings_of(settings: Settings) -> tuple[str, ...]:
    """Return what will not do what was meant, and what to do about it."""
    doubts = (
        _without_prices(settings),
        _never_reached(settings),
        _not_closed(settings),
        _too_late(settings),
        _not_for_agents(settings),
        _not_held(settings),
        _nothing_to_compare(settings),
    )
    return tuple(doubt for each in doubts for doubt in each)


def _limits(settings: Settings) -> Mapping[str, Limits]:
    """Return the limits of the run and of agents, by the path of their table."""
    of_agents = {
        f"agents.{quoted(glob)}.limits": own.limits
        for glob, own in settings.agents.items()
        if own.limits is not None
    }
    return {"limits": settings.limits, **of_agents}


def _tools(settings: Settings) -> Mapping[str, Mapping[str, ToolOptions]]:
    """Return what is said of tools, by the path of the table."""
    of_agents = {f"agents.{quoted(glob)}.tools": own.tools for glob, own in settings.agents.items()}
    return {"tools": settings.tools, **of_agents}


def _without_prices(settings: Settings) -> Iterator[str]:
    limits = _limits(settings)
    capped = [f"{path}.max_cost_usd" for path, held in limits.items() if held.max_cost_usd]
    if capped and not Pricing(settings.usage, estimate=True).available:
        yield (
            f"{', '.join(capped)}: there is no source of prices, so only steps that carry their "
            "own cost count; set usage.price or usage.prices, or install genai-prices"
        )


def _never_reached(settings: Settings) -> Iterator[str]:
    orders: dict[str, Iterable[str]] = {"agents": settings.agents}
    for path, tools in _tools(settings).items():
        # The exact name of a tool counts before any pattern, and `*` after all of them.
        orders[path] = [name for name in tools if name != "*" and re.search(r"[*?[]", name)]
    for path, globs in orders.items():
        for earlier, later in combinations(globs, 2):
            if fnmatchcase(later, earlier):
                first, second = f"{path}.{quoted(earlier)}", f"{path}.{quoted(later)}"
                yield (
                    f"{second}: never counts, for {first} stands before it and the first pattern "
                    "that matches counts; put it first"
                )


def _not_closed(settings: Settings) -> Iterator[str]:
    tables: dict[str, Iterable[str]] = {
        **_tools(settings),
        "agents": settings.agents,
        "usage.prices": settings.usage.prices,
    }
    for path, globs in tables.items():
        for glob in globs:
            if "[" in _CLOSED.sub("", glob):
                yield (
                    f"{path}.{quoted(glob)}: its [ is never closed, so it stands for itself; "
                    "close it, or write [[] for the character"
                )


def _too_late(settings: Settings) -> Iterator[str]:
    of_run = {**DEFAULT_RULES, **settings.rules}
    yield from _after_abort("rules", settings.rules, DEFAULT_RULES)
    yield from _too_late_for_tools("tools", settings.tools, of_run)
    for glob, own in settings.agents.items():
        path = f"agents.{quoted(glob)}"
        said = {rule: line for rule, line in own.rules.items() if line is not None}
        yield from _after_abort(f"{path}.rules", said, of_run)
        yield from _too_late_for_tools(f"{path}.tools", own.tools, {**of_run, **said})


def _too_late_for_tools(
    path: str, tools: Mapping[str, ToolOptions], base: Mapping[str, Thresholds]
) -> Iterator[str]:
    for name, tool in tools.items():
        yield from _after_abort(f"{joined(path, name)}.rules", tool.rules, base)


def _after_abort(
    path: str, said: Mapping[str, Thresholds], base: Mapping[str, Thresholds]
) -> Iterator[str]:
    for rule, line in said.items():
        warn, abort = line.warn, line.abort
        taken_over = warn == base.get(rule, _NEVER).warn  # nobody asked for this one
        if warn is not None and abort is not None and warn > abort and not taken_over:
            yield (
                f"{path}.{rule}.warn: {warn:g} is never reached, for abort is {abort:g}; "
                "set it below that"
            )


def _not_for_agents(settings: Settings) -> Iterator[str]:
    across = {*RULES["tool"]} - {*RULES["agent"]}
    for glob, own in settings.agents.items():
        for name, tool in own.tools.items():
            for rule in sorted(across & {*tool.rules}):
                speaks = tool.rules[rule].lowest != _NEVER.lowest
                if speaks and settings.lowest(rule) == _NEVER.lowest:
                    path = f"agents.{quoted(glob)}.tools"
                    yield (
                        f"{joined(path, name)}.rules.{rule}: never counts, for that rule looks "
                        f"across agents and is off; set rules.{rule} as well"
                    )


def _not_held(settings: Settings) -> Iterator[str]:
    held = {"limits": (settings.limits, settings)}
    for glob, own in settings.agents.items():
        if own.limits is not None:
            laid_over = settings._replace(tools={**settings.tools, **own.tools})
            held[f"agents.{quoted(glob)}.limits"] = own.limits, laid_over
    for path, (limits, those) in held.items():
        for name in limits.max_calls_per_tool:
            options = those.of_tool(name)
            if options is not None and options.exempt:
                yield (
                    f"{joined(f'{path}.max_calls_per_tool', name)}: never counts, for no limit is "
                    "held against a tool that is exempt; take exempt away, or write poll"
                )


def _nothing_to_compare(settings: Settings) -> Iterator[str]:
    for path, limits in _limits(settings).items():
        if not limits.compare_arguments and limits.max_repeated_calls is None:
            yield (
                f"{path}.compare_arguments: does nothing by itself; "
                f"set {path}.max_repeated_calls as well"
            )
