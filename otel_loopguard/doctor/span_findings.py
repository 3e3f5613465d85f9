"""Which spans are missing altogether, and which have lost something on their way."""

from __future__ import annotations

from collections.abc import Iterator

from otel_loopguard import switches
from otel_loopguard.doctor.finding import Finding, of, some
from otel_loopguard.doctor.sightings import ScopeSeen, Seen

_NOTHING = "nothing is watched: no rule and no limit can act"
_NO_MODELS = (
    "limits on model calls, tokens, context and cost, and repeated_output, truncated_turns, "
    "unknown_tool and extra_turn see nothing; how a run ended is not known"
)
_NO_TOOLS = (
    "the rules that compare calls and results see nothing; limits on model calls and tokens, and "
    "truncated_turns, act"
)
_CUT = "a value that may have been cut equals nothing, so that equal calls do not look equal"
_FULL = "the oldest attributes are lost: tokens, the model, and the arguments of requested calls"


def span_findings(seen: Seen) -> Iterator[Finding]:
    """Yield what is missing of the spans."""
    steps = [scope for scope in seen.scopes if _steps_of(scope)]
    if not steps:
        yield Finding(
            finding="no_steps",
            severity="blind",
            scopes=tuple(scope.scope for scope in seen.scopes),
            what=f"none of {some(seen.spans, 'span')} is an agent, a model call or a tool call",
            means=_NOTHING,
            remedy="switch an instrumentation of your framework on: docs/frameworks.md",
        )
        return
    yield from _no_models(steps)
    yield from _no_tools(steps)
    for scope in seen.scopes:
        yield from _lost(scope)


def _steps_of(scope: ScopeSeen) -> int:
    calls = scope.models.calls + scope.tools.calls + scope.agents.spans
    return calls + scope.requested.calls + scope.parts + scope.other_steps


def _no_models(steps: list[ScopeSeen]) -> Iterator[Finding]:
    if any(scope.models.calls for scope in steps):
        return
    switch = _models_switch(steps)
    yield Finding(
        finding="no_model_calls",
        severity="blind",
        scopes=tuple(scope.scope for scope in steps),
        what="no span is a model call",
        means=_NO_MODELS,
        remedy=switches.MODEL_CALLS if switch is None else switch.models,
        source="" if switch is None else switch.source,
    )


def _no_tools(steps: list[ScopeSeen]) -> Iterator[Finding]:
    if any(scope.tools.calls or scope.requested.calls for scope in steps):
        return
    asked = sum(scope.models.asking for scope in steps)
    models = [scope for scope in steps if scope.models.calls]
    if models and not asked and all(scope.models.requested_calls for scope in models):
        return  # the models are known to have asked for none
    if models and not asked and any(scope.models.finish_reasons for scope in models):
        return  # they ended otherwise
    remedy, source = _tools_remedy(models, steps)
    calls = sum(scope.models.calls for scope in models)
    what = f", though {of(asked, calls, 'model call')} asked for one" if asked else ""
    yield Finding(
        finding="no_tool_calls",
        severity="blind",
        scopes=tuple(scope.scope for scope in models or steps),
        what=f"no tool call is seen: there is no span of one, and no answer that names one{what}",
        means=_NO_TOOLS,
        remedy=remedy,
        source=source,
    )


def _models_switch(steps: list[ScopeSeen]) -> switches.Switch | None:
    """Return the switch of the instrumentation that shows most steps, of those with one."""
    most_first = sorted(steps, key=lambda scope: -(scope.agents.spans + scope.tools.calls))
    known = [switches.switch_of(scope.scope) for scope in most_first]
    return next((each for each in known if each is not None and each.models), None)


def _tools_remedy(models: list[ScopeSeen], steps: list[ScopeSeen]) -> tuple[str, str]:
    """Return what shows tool calls, as spans or in answers, and from where that is known."""
    known = [switches.switch_of(scope.scope) for scope in models]
    switch = next((each for each in known if each is not None and each.content), None)
    if switch is not None:
        return switch.content, switch.source
    if models:
        return "", ""
    switch = _models_switch(steps)
    remedy = switches.MODEL_CALLS if switch is None else switch.models
    return (
        f"{remedy}, with content: answers name the calls",
        "" if switch is None else switch.source,
    )


def _lost(scope: ScopeSeen) -> Iterator[Finding]:
    if scope.cut:
        yield Finding(
            finding="cut_values",
            severity="weak",
            scopes=(scope.scope,),
            what=f"{some(scope.cut, 'value')} cut at {scope.cut_at:,} characters",
            means=_CUT,
            remedy=switches.VALUE_LENGTH,
        )
    if scope.full:
        yield Finding(
            finding="lost_attributes",
            severity="weak",
            scopes=(scope.scope,),
            what=f"the limit on attributes is reached on {of(scope.full, scope.spans, 'span')}",
            means=_FULL,
            remedy=switches.ATTRIBUTE_COUNT,
        )
