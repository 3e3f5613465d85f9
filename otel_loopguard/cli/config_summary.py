"""What a configuration puts in force, in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from otel_loopguard.cli.tables import printable
from otel_loopguard.environment import Configuration
from otel_loopguard.options.text import beyond
from otel_loopguard.settings import Limits, Thresholds

_BY_DEFAULT = "observe, unless code gives something that stops a run"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force, unless code says otherwise."""

    mode: str | None
    scope: str
    steer: str
    """What models are told when a rule warns; empty for nothing."""
    limits: Mapping[str, Any]
    """Those that are set."""
    rules: Mapping[str, Thresholds]
    """Those that are on for the run, with thresholds."""
    tools: Sequence[str]
    agents: Sequence[str]
    abort: Sequence[str] | None
    hook_timeout_s: float | None
    log_events: bool | None

    def text(self, file: str | None, variables: Sequence[str]) -> str:
        """Return it for people; `file` and `variables` are where it comes from."""
        processor = {
            "abort": None if self.abort is None else ", ".join(self.abort) or "none",
            "hook_timeout_s": self.hook_timeout_s,
            "log_events": self.log_events,
        }
        rows = {
            "file": file or "none",
            "variables": ", ".join(variables) or "none",
            "mode": self.mode or _BY_DEFAULT,
            "scope": self.scope,
            "steer": self.steer,
            "limits": _listed(self.limits) or "none",
            "rules": ", ".join(map(_rule, self.rules, self.rules.values())) or "none",
            "": "(at warn/abort)" if self.rules else "",
            "tools": ", ".join(self.tools),
            "agents": ", ".join(self.agents),
            "processor": _listed({k: v for k, v in processor.items() if v is not None}),
        }
        return "".join(f"{name:<10} {printable(said)}\n" for name, said in rows.items() if said)


def summary_of(configuration: Configuration) -> Summary:
    """Return what a configuration puts in force."""
    settings = configuration.policy.settings
    return Summary(
        mode=configuration.mode or ("enforce" if configuration.abort is not None else None),
        scope=settings.scope,
        steer=settings.steer,
        limits=beyond(settings.limits, Limits()),
        rules={rule: each for rule, each in settings.rules.items() if each.lowest != float("inf")},
        tools=tuple(settings.tools),
        agents=tuple(settings.agents),
        abort=configuration.abort,
        hook_timeout_s=configuration.hook_timeout_s,
        log_events=configuration.log_events,
    )


def _listed(said: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in said.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        counts = cast("Mapping[str, object]", value)
        return "(" + ", ".join(f"{name} {each}" for name, each in counts.items()) + ")"
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _rule(rule: str, line: Thresholds) -> str:
    warn, abort = ("-" if level is None else f"{level:g}" for level in (line.warn, line.abort))
    return f"{rule} {warn}/{abort}"
