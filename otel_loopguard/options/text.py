"""How a policy is shown: as the call that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from otel_loopguard.detectors import DEFAULT_RULES
from otel_loopguard.options.kinds import Mode
from otel_loopguard.options.rules import STAGNATION
from otel_loopguard.pricing import Usage
from otel_loopguard.settings import AgentOptions, Limits, Settings, Thresholds, ToolOptions
from otel_loopguard.values.volatile import Masking


def text_of(mode: Mode | None, settings: Settings) -> str:
    """Return the call that makes such a policy, with no more than it needs."""
    limits = beyond(settings.limits, Limits())
    if mode is None and settings == Settings(settings.limits, {}):
        return "Policy.none()" + (f".with_limits({_arguments(limits)})" if limits else "")
    said = {
        "mode": mode,
        "scope": None if settings.scope == "run" else settings.scope,
        "steer": settings.steer or None,
        **limits,
        "rules": _rules_said(settings),
        "tools": {name: beyond(own, ToolOptions()) for name, own in settings.tools.items()},
        "agents": {glob: _agent_said(own, settings.tools) for glob, own in settings.agents.items()},
        "usage": beyond(settings.usage, Usage()),
        "masking": beyond(settings.masking, Masking()),
    }
    worth_saying = {name: value for name, value in said.items() if value not in (None, {})}
    return f"Policy({_arguments(worth_saying)})"


def _arguments(said: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in said.items())


def _rules_said(settings: Settings) -> dict[str, Any]:
    names = {**DEFAULT_RULES, **settings.rules}
    said = {
        rule: _plain(settings.rules.get(rule))
        for rule in names
        if settings.rules.get(rule) != DEFAULT_RULES.get(rule)
    }
    if not settings.weights:
        return said
    line = settings.rules.get(STAGNATION)
    levels = _plain(line) if line else {"enabled": False}
    return {**said, STAGNATION: {**levels, "weights": dict(settings.weights)}}


def _agent_said(own: AgentOptions, tools: Mapping[str, ToolOptions]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "limits": beyond(own.limits or Limits(), Limits()),
        "rules": _plain(own.rules),
        # What an agent does not say of a tool is as for all agents.
        "tools": {
            name: beyond(options, tools.get(name, ToolOptions()))
            for name, options in own.tools.items()
        },
    }
    return {name: value for name, value in said.items() if value}


def beyond(value: msgspec.Struct, start: msgspec.Struct) -> dict[str, Any]:
    """Return the fields in which a value differs from another of its type."""
    names = value.__struct_fields__
    return {
        name: _plain(getattr(value, name))
        for name in names
        if getattr(value, name) != getattr(start, name)
    }


def _plain(value: object) -> Any:
    if value is None:
        return False  # a rule that is off: no other `None` is among what differs
    if isinstance(value, Thresholds):
        return {"warn": value.warn, "abort": value.abort}
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return {n: each for n in names if (each := getattr(value, n)) is not None}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in cast("Mapping[str, object]", value).items()}
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
