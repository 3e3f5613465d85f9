"""What holds the runs together, and what the guard gets to see of them."""

from __future__ import annotations

from collections.abc import Iterator

from otel_loopguard import switches
from otel_loopguard.doctor.finding import Finding, Name, Severity, of, some
from otel_loopguard.doctor.sightings import Seen

_SINGLE = "a run of one call never repeats itself: no rule and no limit can act on them together"
_BY_IDS = (
    "such a run is over only when a person speaks again or after 300 s without a span, and calls "
    "that name no id are runs of their own"
)
_UNSEEN_TOP = (
    "what hangs below it does not hold together, and nothing tells when such a run is over"
)
_WHOLE = (
    "record whole traces, of all processes; live, add the guard before the first span; or "
    f"{switches.RUN_BLOCK}"
)
_LATE = "the guard knows of such a call when it is over: a limit refuses one call later"
_ANTHROPIC = "com.anthropic.sdk.python"


def run_findings(seen: Seen) -> Iterator[Finding]:
    """Yield what is found on the runs."""
    if seen.sampling:
        yield Finding(
            finding="sampling",
            severity="blind",
            scopes=(),
            what=seen.sampling,
            means="runs that are not sampled are neither watched nor stopped",
            remedy=switches.SAMPLER,
            source="docs/sampling.md",
        )
    yield from _roots(seen)
    yield from _late(seen)
    for twice in seen.seen_twice:
        is_anthropic = _ANTHROPIC in {twice.counted, twice.also}
        yield Finding(
            finding="seen_twice",
            severity="ok",
            scopes=(twice.counted, twice.also),
            what=f"{some(twice.calls, 'model call')} shown twice, counted once",
            remedy="ANTHROPIC_OPEN_TELEMETRY=false, to save spans" if is_anthropic else "",
            source="anthropic 2.14: _tracing.py" if is_anthropic else "",
        )


def _roots(seen: Seen) -> Iterator[Finding]:
    runs = seen.runs
    rows: tuple[tuple[Name, Severity, int, str, str, str], ...] = (
        ("single_calls", "blind", runs.single_calls, "call", "with nothing around it", _SINGLE),
        ("no_root", "weak", runs.ids, "run", "held together by ids, not by a span", _BY_IDS),
        (
            "unseen_root",
            "weak",
            runs.unseen_top_span,
            "run",
            "without its topmost span",
            _UNSEEN_TOP,
        ),
    )
    for name, severity, count, what, how, means in rows:
        # One call alone may well be all that a program wanted to ask.
        if count > (1 if name == "single_calls" else 0):
            yield Finding(
                finding=name,
                severity=severity,
                scopes=(),
                what=f"{some(count, what)} {how}",
                means=means,
                remedy=_WHOLE if name == "unseen_root" else switches.RUN_BLOCK,
                source="docs/stopping.md",
            )
    whole = (
        (runs.agent, "an agent's span"),
        (runs.top_span, "their topmost span"),
        (runs.guarded_run, "guarded_run"),
    )
    total = sum(count for count, _ in whole)
    if total:
        ways = ", ".join(f"{count:,} by {way}" for count, way in whole if count)
        what = f"{some(total, 'run')} with a beginning and an end: {ways}"
        yield Finding(finding="runs", severity="ok", scopes=(), what=what)


def _late(seen: Seen) -> Iterator[Finding]:
    if not seen.is_live:
        return
    for scope in seen.scopes:
        spans = sum(each.spans for each in scope.recognised)
        at_start = sum(each.at_start or 0 for each in scope.recognised)
        if at_start < spans:
            yield Finding(
                finding="late",
                severity="weak",
                scopes=(scope.scope,),
                what=f"what it is shows at the start on {of(at_start, spans, 'span')}",
                means=_LATE,
            )
