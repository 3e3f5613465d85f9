"""What a policy says of single tools and agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from otel_loopguard.options.errors import quoted, refuse_unknown, wrong
from otel_loopguard.options.kinds import laid_over, names_of, patterns_of, switch_of, table_of
from otel_loopguard.options.limits import limits_over
from otel_loopguard.options.rules import rules_said
from otel_loopguard.settings import AgentOptions, Limits, Settings, Thresholds, ToolOptions

_NEVER = Thresholds()
"""How a rule is switched off for one tool."""
_UNDER_LIMITS = dict.fromkeys(
    Limits.__struct_fields__, "a tool has no limits of its own: set limits.max_calls_per_tool"
)
_UNDER_AGENT_LIMITS = dict.fromkeys(Limits.__struct_fields__, "write it under limits of this agent")
_OF_A_TOOL = dict.fromkeys(
    ToolOptions.__struct_fields__, "write it under tools of this agent, and the tool's name"
)


def tools_over(
    current: Mapping[str, ToolOptions],
    table: Mapping[str, object],
    path: str,
    rules: Mapping[str, Thresholds],
) -> dict[str, ToolOptions]:
    """Return what is said of tools with `table` laid over it, option by option.

    `rules` are the thresholds that hold where a tool has none of its own.

    Raises:
        PolicyError: for an option that there is not, or a value that it does not take.

    """

    def read(value: object, at: str, start: ToolOptions | None) -> ToolOptions | None:
        return None if value is None else _tool_of(value, at, start or ToolOptions(), rules)

    return laid_over(current, table, path, read)


def _tool_of(
    value: object, path: str, start: ToolOptions, rules: Mapping[str, Thresholds]
) -> ToolOptions:
    table = table_of(value, path)
    refuse_unknown(table, ToolOptions.__struct_fields__, f"{path}.", _UNDER_LIMITS)
    made: dict[str, Any] = {}
    for name, given in table.items():
        at = f"{path}.{name}"
        if name == "rules":
            own = {r: line for r, line in start.rules.items() if line != _NEVER}
            said = rules_said(table_of(given, at), at, {**rules, **own}, "tool")
            made[name] = {**start.rules, **{r: line or _NEVER for r, line in said.items()}}
        elif name == "error_patterns":
            made[name] = patterns_of(given, at)
        elif name == "ignore_arguments":
            made[name] = _ignored_of(given, at)
        elif name == "writes" and not isinstance(given, bool):
            made[name] = _state_of(given, at)
        else:
            made[name] = switch_of(given, at)
    return msgspec.structs.replace(start, **made)


def _ignored_of(value: object, path: str) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    expected = "true, false or a list of names of arguments"
    if value is None:
        raise wrong(path, expected, value)
    return names_of(value, path, expected) or False


def _state_of(value: object, path: str) -> object:
    if callable(value):
        return value
    raise wrong(path, "true or false, or in code a callable that takes the step", value)


def agents_over(
    current: Mapping[str, AgentOptions],
    table: Mapping[str, object],
    path: str,
    settings: Settings,
) -> dict[str, AgentOptions]:
    """Return what is said of agents with `table` laid over it; its patterns come first.

    What an agent's table does not say of a rule or a tool is as in `settings`.

    Raises:
        PolicyError: for an option that there is not, or a value that it does not take.

    """
    made = {
        glob: _agent_of(value, f"{path}.{quoted(glob)}", current.get(glob), settings)
        for glob, value in table.items()
        if value is not None
    }
    return {**made, **{glob: own for glob, own in current.items() if glob not in table}}


def _agent_of(
    value: object, path: str, current: AgentOptions | None, settings: Settings
) -> AgentOptions:
    start = current or AgentOptions()
    table = table_of(value, path)
    hints = {**_UNDER_AGENT_LIMITS, **_OF_A_TOOL}
    refuse_unknown(table, AgentOptions.__struct_fields__, f"{path}.", hints)
    limits, rules, tools = (
        table_of(table.get(part), f"{path}.{part}") for part in ("limits", "rules", "tools")
    )
    held = limits_over(start.limits or Limits(), limits, f"{path}.limits.")
    on = {rule: line for rule, line in start.rules.items() if line is not None}
    said = {**start.rules, **rules_said(rules, f"{path}.rules", {**settings.rules, **on}, "agent")}
    in_force = {rule: line for rule, line in {**settings.rules, **said}.items() if line is not None}
    own = tools_over({**settings.tools, **start.tools}, tools, f"{path}.tools", in_force)
    named = {*start.tools, *tools}
    return AgentOptions(
        limits=held if held != Limits() else None,
        rules=said,
        tools={name: options for name, options in own.items() if name in named},
    )
