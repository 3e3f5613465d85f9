"""Dialects: the conventions in which spans are written. `SpanRecord` -> `Step`.

One file per convention, each with the month it was checked in, what it reads, and from where that
is known. A dialect is a function, so another one is added by passing it along:
`read_step(record, (mine, *BUILT_IN))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from otel_loopguard import semconv
from otel_loopguard.dialects import gen_ai, openinference, openllmetry
from otel_loopguard.dialects._errors import error_of
from otel_loopguard.dialects._hashes import or_hash
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import SpanKey, Step

__all__ = ["BUILT_IN", "Dialect", "read_step"]

_NANOSECONDS = 1e9


class Dialect(Protocol):
    """One convention: the step that a span is in its terms, `None` if it knows of none.

    Called when a span starts (`ended_ns` is `None`, few attributes are there) and when it has
    ended. It must not raise, and most spans are nobody's: those should cost it one look-up.
    """

    def __call__(self, record: SpanRecord, /) -> Step | None:
        """Read `record`."""
        ...


BUILT_IN: tuple[Dialect, ...] = (openinference.read, openllmetry.read, gen_ai.read)
"""The first that finds a step is believed.

OpenInference comes first because, where it is on a span with the GenAI names, it may have written
those as well, and wrongly (a tool's schema as its arguments). OpenLLMetry's own names say more than
the GenAI ones that it adds to them.
"""


def read_step(record: SpanRecord, dialects: Sequence[Dialect] = BUILT_IN) -> Step | None:
    """Return the step that a span is; `None` if it is nobody's step.

    What is the same in all conventions is read here: the error, the times, the span's identity, and
    the hashes that stand for arguments and result where these are not there.
    """
    for dialect in dialects:
        step = dialect(record)
        if step is not None:
            return msgspec.structs.replace(
                step,
                arguments=or_hash(step.arguments, record, semconv.ARGUMENTS_HASH),
                result=or_hash(step.result, record, semconv.RESULT_HASH),
                error=step.error or error_of(record),
                started_s=_seconds(record.started_ns),
                ended_s=_seconds(record.ended_ns),
                span=SpanKey(record.trace_id, record.span_id),
            )
    return None


def _seconds(nanoseconds: int | None) -> float | None:
    return nanoseconds / _NANOSECONDS if nanoseconds else None
