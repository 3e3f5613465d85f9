"""Dialects: the conventions in which spans are written. `SpanRecord` -> `Step`.

One file per convention, each with the month it was checked in, what it reads, and from where that
is known. Third parties add theirs: by passing it along, `read_step(record, Dialects((mine,
*BUILT_IN)))`, or by an entry point of the group `otel_loopguard_dialect` that names a `Dialect`.
"""

from __future__ import annotations

import msgspec

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
from otel_loopguard.dialects._dialect import Dialect, Dialects, Marks
from otel_loopguard.dialects._errors import error_of
from otel_loopguard.dialects._frameworks import AGENTS_BY_NAME
from otel_loopguard.dialects._hashes import hash_of
from otel_loopguard.dialects._values import HIDDEN
from otel_loopguard.registry import names
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import ModelInput, SpanKey, Step

__all__ = [
    "BUILT_IN",
    "HIDDEN",
    "READ_BY_PLACE",
    "Dialect",
    "Dialects",
    "Marks",
    "read_input",
    "read_step",
]

_NANOSECONDS = 1e9

READ_BY_PLACE = AGENTS_BY_NAME
"""Scopes whose spans are agents or not by whether any of their scope is above them."""

BUILT_IN: tuple[Dialect, ...] = (
    openinference.DIALECT,
    openllmetry.DIALECT,
    langsmith.DIALECT,
    vercel_ai.DIALECT,
    haystack.DIALECT,
    google_adk.DIALECT,
    strands.DIALECT,
    agent_framework.DIALECT,
    ag2.DIALECT,
    claude_code.DIALECT,
    mcp.DIALECT,
    gen_ai.DIALECT,
)
"""The first that finds a step is believed.

OpenInference comes first because, where it is on a span with the GenAI names, it may have written
those as well, and wrongly (a tool's schema as its arguments). The own names of OpenLLMetry,
LangSmith and the Vercel AI SDK say more than the GenAI ones that they add to them. Frameworks that
bend the GenAI names come before these.
"""

_BUILT_IN = Dialects(BUILT_IN)


def read_step(record: SpanRecord, dialects: Dialects = _BUILT_IN) -> Step | None:
    """Return the step that a span is; `None` if it is nobody's step.

    What is the same in all conventions is read here: the error, the times, the span's identity, and
    the hashes that stand for arguments and result where these are not there.
    """
    for dialect in dialects.of(record):
        step = dialect.read(record)
        if step is not None:
            arguments, result = step.arguments, step.result
            if arguments is UNKNOWN:
                arguments = hash_of(record, names.ARGUMENTS_HASH)
            if result is UNKNOWN:
                result = hash_of(record, names.RESULT_HASH)
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


def read_input(record: SpanRecord, dialects: Dialects = _BUILT_IN) -> ModelInput | None:
    """Return what is new in the input of a model call; `None` if the span does not show it.

    This costs more than reading the step, so that it is done where it matters only.
    """
    for dialect in dialects.of(record):
        heard = dialect.read_input(record)
        if heard is not None:
            return heard
    return None


def _seconds(nanoseconds: int | None) -> float | None:
    return nanoseconds / _NANOSECONDS if nanoseconds else None
