"""What tool calls and model calls show, and what they do not."""

from __future__ import annotations

from collections.abc import Iterator

from otel_loopguard import switches
from otel_loopguard.doctor.finding import Finding, Name, of, some
from otel_loopguard.doctor.sightings import ScopeSeen, Seen

_WITHOUT_ARGUMENTS = (
    "repeated_call, repeated_result, cyclic_calls, revisited_results, no_novelty, "
    "unchanged_result and stagnation see nothing of these calls; limits, repeated_error, "
    "truncated_turns and agent_handoff_cycle act"
)
_WITHOUT_RESULTS = (
    "repeated_call and cyclic_calls stand in for the rules that compare results "
    "(repeated_result, revisited_results, no_novelty, unchanged_result, stagnation): they wait "
    "longer, and take polling for a loop"
)
_WITHOUT_ANSWERS = (
    "repeated_output and unknown_tool see nothing, and a call that has no span of its own stays "
    "unseen"
)
_WITHOUT_USAGE = "limits on tokens, context and cost see nothing of these calls"
_WITHOUT_REASONS = "truncated_turns sees nothing, and how a run ended is not known"


def content_findings(seen: Seen) -> Iterator[Finding]:
    """Yield what is missing on the steps of each instrumentation, and what is not."""
    for scope in seen.scopes:
        yield from _tool_calls(scope)
        yield from _requested(scope)
        yield from _model_calls(scope)


def _tool_calls(scope: ScopeSeen) -> Iterator[Finding]:
    tools = scope.tools
    if not tools.calls:
        return
    shown = of(tools.arguments, tools.calls, "tool call")
    if tools.arguments < tools.calls:
        yield _missing(
            scope,
            "no_arguments" if not tools.arguments else "some_arguments",
            f"arguments are on {shown}{_hidden(scope)}",
            _WITHOUT_ARGUMENTS,
            is_blind=not tools.arguments,
        )
    elif tools.results + tools.errors < tools.calls:
        what = f"results are on {of(tools.results, tools.calls, 'tool call')}"
        yield _missing(scope, "no_results", what, _WITHOUT_RESULTS)
    else:
        what = f"{some(tools.calls, 'tool call')} with arguments, and with what came of them"
        yield Finding(finding="tool_calls", severity="ok", scopes=(scope.scope,), what=what)


def _requested(scope: ScopeSeen) -> Iterator[Finding]:
    calls = scope.requested.calls
    if calls:
        yield Finding(
            finding="calls_from_messages",
            severity="ok",
            scopes=(scope.scope,),
            what=f"{some(calls, 'tool call')} without a span, read from the messages of the model",
            means="they are judged when the next model call shows that they happened, and their "
            "results when that call shows them",
        )


def _model_calls(scope: ScopeSeen) -> Iterator[Finding]:
    models, scopes = scope.models, (scope.scope,)
    came_back = models.calls - models.errors
    if came_back <= 0:
        return
    if not models.output and not models.requested_calls:
        what = f"answers are on {of(0, models.calls, 'model call')}{_hidden(scope)}"
        yield _missing(scope, "no_answers", what, _WITHOUT_ANSWERS)
    if models.usage < came_back:
        yield Finding(
            finding="some_usage" if models.usage else "no_usage",
            severity="weak",
            scopes=scopes,
            what=f"tokens are on {of(models.usage, models.calls, 'model call')}",
            means=_WITHOUT_USAGE,
            remedy=switches.STREAMED_USAGE if models.usage else "",
            source="recordings: only streamed calls lack them" if models.usage else "",
        )
    if not models.finish_reasons:
        yield Finding(
            finding="no_finish_reasons",
            severity="weak",
            scopes=scopes,
            what=f"why it ended is on {of(0, models.calls, 'model call')}",
            means=_WITHOUT_REASONS,
        )
    if models.usage >= came_back and models.output + models.requested_calls:
        what = f"{some(models.calls, 'model call')} with tokens and answers"
        yield Finding(finding="model_calls", severity="ok", scopes=scopes, what=what)


def _missing(
    scope: ScopeSeen, finding: Name, what: str, means: str, *, is_blind: bool = False
) -> Finding:
    """Return a finding whose remedy is the switch for content."""
    switch = switches.switch_of(scope.scope)
    return Finding(
        finding=finding,
        severity="blind" if is_blind else "weak",
        scopes=(scope.scope,),
        what=what,
        means=means,
        remedy="" if switch is None else switch.content,
        source="" if switch is None else switch.source,
    )


def _hidden(scope: ScopeSeen) -> str:
    return (
        f"; {some(scope.redacted, 'span')} with values that were hidden" if scope.redacted else ""
    )
