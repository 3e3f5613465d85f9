"""The limits of a policy: what each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

import msgspec

from otel_loopguard.detectors import RULES
from otel_loopguard.options.errors import joined, refuse_unknown
from otel_loopguard.options.kinds import AmountOf, CountBetween, count_of, switch_of, table_of
from otel_loopguard.settings import Limits

LIMIT_OF_RULE = {
    "step_budget": "max_steps",
    "llm_call_budget": "max_llm_calls",
    "tool_call_budget": "max_tool_calls",
    "time_budget": "max_duration_s",
    "idle_run": "max_idle_s",
    "token_budget": "max_total_tokens",
    "context_budget": "max_context_tokens",
    "cost_budget": "max_cost_usd",
    "agent_depth": "max_agent_depth",
    "step_rate": "max_steps_per_minute",
    "consecutive_errors": "max_consecutive_errors",
    "idle_turns": "max_turns_without_tool",
    "repeated_call_limit": "max_repeated_calls",
    "same_tool": "max_same_tool_calls",
    "loop_pattern": "loop_pattern_window",
}
"""The option that switches on each rule that is a limit; where there are several, the usual one."""

_HINTS = {rule: f"that is a rule: set rules.{rule}" for rule in RULES}
_KEYWORDS = {
    **_HINTS,
    **{
        part: f"LoopGuard and with_limits take limits alone; write LoopGuard(Policy({part}=...))"
        for part in ("mode", "scope", "steer", "rules", "tools", "agents", "usage", "masking")
    },
    "limits": "each limit is an argument of its own: max_steps=100",
}


class LimitOptions(TypedDict, total=False):
    """The limits as keyword arguments; `0` or `None` switches one off.

    Of N the N-th is allowed and the next one is refused. `max_duration_s` and `max_idle_s` are in
    seconds, `max_cost_usd` in US dollars, and a run is late at equality. `max_calls_per_tool` maps
    tool names to limits.
    """

    max_steps: int | None
    max_llm_calls: int | None
    max_tool_calls: int | None
    max_calls_per_tool: Mapping[str, int] | None
    max_duration_s: float | None
    max_idle_s: float | None
    max_input_tokens: int | None
    max_output_tokens: int | None
    max_total_tokens: int | None
    max_context_tokens: int | None
    max_cost_usd: float | None
    max_agent_depth: int | None
    max_steps_per_minute: int | None
    max_consecutive_errors: int | None
    max_turns_without_tool: int | None
    max_repeated_calls: int | None
    compare_arguments: bool
    max_same_tool_calls: int | None
    loop_pattern_window: int | None


def limits_over(current: Limits, table: Mapping[str, object], path: str) -> Limits:
    """Return the limits with those of `table` set or switched off; `path` ends in a dot, or is "".

    Raises:
        PolicyError: for a limit that there is not, or a value that it does not take.

    """
    refuse_unknown(table, Limits.__struct_fields__, path, _HINTS if path else _KEYWORDS)
    made = {name: READERS.get(name, count_of)(value, path + name) for name, value in table.items()}
    return msgspec.structs.replace(current, **made)


def _counts_of(value: object, path: str) -> dict[str, int]:
    table = table_of(value, path)
    counts = {name: count_of(number, joined(path, name)) for name, number in table.items()}
    return {name: count for name, count in counts.items() if count is not None}


_seconds_of = AmountOf("a number of seconds")

READERS: dict[str, Callable[[object, str], object]] = {
    "max_calls_per_tool": _counts_of,
    "max_duration_s": _seconds_of,
    "max_idle_s": _seconds_of,
    "max_cost_usd": AmountOf("US dollars"),
    "max_steps_per_minute": CountBetween(1, 10_000),  # the times of so many steps are kept
    "compare_arguments": switch_of,
    "loop_pattern_window": CountBetween(2, 256),
}
"""What reads the limits that are no mere counts."""
