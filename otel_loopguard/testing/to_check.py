"""What to check where no guard has stopped a run: is there one, does it act, what does it see?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from otel_loopguard import switches
from otel_loopguard.dialects import read_step
from otel_loopguard.doctor import Sighting, examine, report_on
from otel_loopguard.installed_dialects import chosen
from otel_loopguard.live_spans import record_of
from otel_loopguard.processor import guards_of_process

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from otel_loopguard.testing.runs_heard import RunHeard

_INSTALL = "otel_loopguard.install(mode='enforce')"
_NO_GUARD = (
    f"no guard is installed: call {_INSTALL} before the agent runs, or add a "
    "LoopGuardSpanProcessor(mode='enforce') to the tracer provider; a loop of your own may ask a "
    "LoopGuard itself"
)
_NO_SPANS = (
    "the guard saw no model spans, for there are none: set a TracerProvider of the SDK, and switch "
    "an instrumentation of your framework on: docs/frameworks.md"
)
_OTHER_PROVIDER = (
    "a guard is there, but saw none of these spans: add it to the provider that they come from, or "
    f"call {_INSTALL}, which watches the global one and those that come"
)
_OBSERVES = (
    "guard in observe mode: {rule} tripped, and nothing was stopped; set mode='enforce' or "
    "OTEL_LOOPGUARD_MODE=enforce"
)
_NOT_HEEDED = (
    "{rule} tripped, and the run went on: does its client go through the model gate? See "
    "docs/zero-code.md, and give it its integration"
)
_NO_MODEL_CALLS = (
    f"the guard saw no model spans: limits on model calls cannot act; {switches.MODEL_CALLS}"
)
_NOTHING_TRIPPED = (
    "the guard saw the run, and no rule tripped: is the rule, or the limit, in force?"
)
_TOO_EARLY = (
    "if it had not come far after {given:g} s, give it more time: timeout={more:g}; the first run "
    "of a framework takes seconds on a busy machine"
)
_TIMES_AS_LONG = 5


def things_to_check(runs: Sequence[RunHeard], spans: Sequence[ReadableSpan]) -> list[str]:
    """Return what may be wrong, the likeliest first, in the words of the doctor."""
    if any(run.was_stopped for run in runs):
        return []
    return list(_unheard(spans)) if not runs else list(_heard(runs, spans))


def time_to_check(timeout_s: float) -> str:
    """Return how a run gets more time, for one that had too little to come to its end."""
    return _TOO_EARLY.format(given=timeout_s, more=timeout_s * _TIMES_AS_LONG)


def _unheard(spans: Sequence[ReadableSpan]) -> Iterator[str]:
    if not guards_of_process():
        yield _NO_GUARD
    elif not spans:
        yield _NO_SPANS
    elif any(read_step(record_of(span), chosen(None)) is not None for span in spans):
        yield _OTHER_PROVIDER
    else:
        yield "the guard saw no model spans"
        yield from _findings(spans)


def _heard(runs: Sequence[RunHeard], spans: Sequence[ReadableSpan]) -> Iterator[str]:
    tripped = [run for run in runs if run.trip is not None]
    for run in tripped[:1]:
        text = _NOT_HEEDED if run.enforces else _OBSERVES
        yield text.format(rule=run.trip and run.trip.rule)
    kinds = sum((run.kinds for run in runs), Counter[str]())
    if not kinds["llm"]:
        yield _NO_MODEL_CALLS
    elif not tripped:
        yield _NOTHING_TRIPPED
    if spans and not tripped:
        yield from _findings(spans)


def _findings(spans: Sequence[ReadableSpan]) -> Iterator[str]:
    """Yield what the doctor finds of the spans that keeps rules from acting."""
    seen = examine(Sighting(record=record_of(span)) for span in spans)
    for finding in report_on(seen).findings:
        if finding.severity != "ok":
            yield str(finding)
