"""The tables of a policy, and how one policy is laid over another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS
from otel_loopguard.options.kinds import Mode, mode_of, scope_of, table_of
from otel_loopguard.options.limits import limits_over
from otel_loopguard.options.rules import RULES, rules_over, weights_over
from otel_loopguard.options.steering import steer_over
from otel_loopguard.options.tools import agents_over, tools_over
from otel_loopguard.options.usage import masking_over, usage_over
from otel_loopguard.pricing import Usage
from otel_loopguard.settings import Limits, Settings, ToolOptions
from otel_loopguard.values.volatile import Masking

SECTIONS = ("mode", "scope", "steer", "limits", "rules", "tools", "agents", "usage", "masking")
"""What may stand at the top of a policy."""

ELSEWHERE = {
    **dict.fromkeys(RULES["run"], "write it under [rules]"),
    **dict.fromkeys(Limits.__struct_fields__, "write it under [limits]"),
    **dict.fromkeys(ToolOptions.__struct_fields__, "write it under [tools] and the tool's name"),
    **dict.fromkeys(Usage.__struct_fields__, "write it under [usage]"),
    **dict.fromkeys(Masking.__struct_fields__, "write it under [masking]"),
}
"""Where to write what does not stand at the top."""

Made: TypeAlias = "tuple[Mode | None, Settings]"
"""A mode, if the policy says one, and all else that it settles."""

DEFAULT: Made = (None, Settings(Limits(), DEFAULT_RULES))


def override(
    start: Made, said: Mapping[str, object], limits: Mapping[str, object], *, limits_path: str
) -> Made:
    """Return what is settled where what a mapping says, and the limits, are laid over `start`.

    `limits_path` is what comes before the name of a limit in an error.

    Raises:
        PolicyError: names the path of what is wrong.

    """
    start_mode, old = start
    rules, tools, agents, usage, masking = (
        table_of(said.get(section), section) for section in SECTIONS[4:]
    )
    of_run = old._replace(
        limits=limits_over(old.limits, limits, limits_path),
        rules=rules_over(old.rules, rules, "rules"),
        scope=scope_of(said.get("scope"), "scope") or old.scope,
        usage=usage_over(old.usage, usage, "usage"),
        masking=masking_over(old.masking, masking, "masking"),
        weights=weights_over(old.weights, rules, "rules"),
        steer=steer_over(old.steer, said.get("steer"), "steer"),
    )
    with_tools = of_run._replace(tools=tools_over(old.tools, tools, "tools", of_run.rules))
    new = with_tools._replace(agents=agents_over(old.agents, agents, "agents", with_tools))
    return mode_of(said.get("mode"), "mode") or start_mode, new


def rules_on(settings: Settings) -> set[str]:
    """Return the rules and limits that can speak, be it for one agent or tool only."""
    alone = (Settings(own.limits, {}) for own in settings.agents.values() if own.limits)
    on = {d.rule for each in (settings, *alone) for d in DETECTORS if d.of(each) is not None}
    of_run = (own.rules for own in settings.tools.values())
    of_agents = (
        table
        for own in settings.agents.values()
        for table in (own.rules, *(tool.rules for tool in own.tools.values()))
    )
    levels = (
        *((rule, line) for table in of_run for rule, line in table.items()),
        # What looks across agents is made for the run, or not at all.
        *((r, line) for table in of_agents for r, line in table.items() if r in RULES["agent"]),
    )
    return on | {rule for rule, line in levels if line and line.lowest != float("inf")}
