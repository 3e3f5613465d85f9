"""Dialects: the conventions in which spans are written. `SpanRecord` -> `Step`.

One file per convention, each with the month it was checked in, what it reads, and from where that
is known. Third parties add theirs: by passing it along, `read_step(record, (mine, *BUILT_IN))`, or
by an entry point of the group `otel_loopguard_dialect` that names a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from otel_loopguard import semconv
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects import (
    ag2,
    agent_framework,
    claude_code,
    gen_ai,
    google_adk,
    haystack,
    langsmith,
    mcp,
    openinference,
    openllmetry,
    strands,
    vercel_ai,
)
from otel_loopguard.dialects._errors import error_of
from otel_loopguard.dialects._hashes import hash_of
from otel_loopguard.dialects._marks import Marks, Recognition
from otel_loopguard.dialects._values import HIDDEN
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, SpanKey, Step

__all__ = ["BUILT_IN", "HIDDEN", "Dialect", "Marks", "read_input", "read_step"]

_NANOSECONDS = 1e9


def _nothing_known(_: SpanRecord) -> ModelInput | None:
    return None


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One convention.

    Its functions are called when a span starts (`ended_ns` is `None`, few attributes are there) and
    when it has ended. They must not raise, and most spans are nobody's: those should cost one
    look-up.
    """

    name: str
    read: Callable[[SpanRecord], Step | None]
    """Returns the step that a span is, `None` if the convention knows of none."""
    read_input: Callable[[SpanRecord], ModelInput | None] = _nothing_known
    """Returns what is new in a model call's input; `None` if the span does not show it."""
    marks: Marks | None = None
    """What it knows its spans by; if `None`, it is asked about each."""


BUILT_IN: tuple[Dialect, ...] = (
    Dialect(
        name="openinference",
        read=openinference.read,
        read_input=openinference.read_input,
        marks=openinference.MARKS,
    ),
    Dialect(
        name="openllmetry",
        read=openllmetry.read,
        read_input=openllmetry.read_input,
        marks=openllmetry.MARKS,
    ),
    Dialect(
        name="langsmith",
        read=langsmith.read,
        read_input=langsmith.read_input,
        marks=langsmith.MARKS,
    ),
    Dialect(
        name="vercel_ai",
        read=vercel_ai.read,
        read_input=vercel_ai.read_input,
        marks=vercel_ai.MARKS,
    ),
    Dialect(
        name="haystack",
        read=haystack.read,
        read_input=haystack.read_input,
        marks=haystack.MARKS,
    ),
    Dialect(
        name="google_adk",
        read=google_adk.read,
        read_input=google_adk.read_input,
        marks=google_adk.MARKS,
    ),
    Dialect(
        name="strands",
        read=strands.read,
        read_input=strands.read_input,
        marks=strands.MARKS,
    ),
    Dialect(name="agent_framework", read=agent_framework.read, marks=agent_framework.MARKS),
    Dialect(name="ag2", read=ag2.read, marks=ag2.MARKS),
    Dialect(name="claude_code", read=claude_code.read, marks=claude_code.MARKS),
    Dialect(name="mcp", read=mcp.read, marks=mcp.MARKS),
    Dialect(
        name="gen_ai",
        read=gen_ai.read,
        read_input=gen_ai.read_input,
        marks=gen_ai.MARKS,
    ),
)
"""The first that finds a step is believed.

OpenInference comes first because, where it is on a span with the GenAI names, it may have written
those as well, and wrongly (a tool's schema as its arguments). The own names of OpenLLMetry,
LangSmith and the Vercel AI SDK say more than the GenAI ones that they add to them. Frameworks that
bend the GenAI names come before these.
"""

_RECOGNITION = Recognition((dialect.marks, dialect) for dialect in BUILT_IN)


def read_step(record: SpanRecord, dialects: Sequence[Dialect] = BUILT_IN) -> Step | None:
    """Return the step that a span is; `None` if it is nobody's step.

    What is the same in all conventions is read here: the error, the times, the span's identity, and
    the hashes that stand for arguments and result where these are not there.
    """
    for dialect in _asked(record, dialects):
        step = dialect.read(record)
        if step is not None:
            arguments, result = step.arguments, step.result
            if arguments is UNKNOWN:
                arguments = hash_of(record, semconv.ARGUMENTS_HASH)
            if result is UNKNOWN:
                result = hash_of(record, semconv.RESULT_HASH)
            return msgspec.structs.replace(
                step,
                arguments=arguments,
                result=result,
                error=step.error or error_of(record),
                started_s=_seconds(record.started_ns),
                ended_s=_seconds(record.ended_ns),
                span=SpanKey(record.trace_id, record.span_id),
            )
    return None


def read_input(record: SpanRecord, dialects: Sequence[Dialect] = BUILT_IN) -> ModelInput | None:
    """Return what is new in the input of a model call; `None` if the span does not show it.

    This costs more than reading the step, so that it is done where it matters only.
    """
    for dialect in _asked(record, dialects):
        heard = dialect.read_input(record)
        if heard is not None:
            return heard
    return None


def _asked(record: SpanRecord, dialects: Sequence[Dialect]) -> Sequence[Dialect]:
    return _RECOGNITION.of(record) if dialects is BUILT_IN else dialects


def _seconds(nanoseconds: int | None) -> float | None:
    return nanoseconds / _NANOSECONDS if nanoseconds else None
