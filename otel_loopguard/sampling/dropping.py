"""Which samplers drop spans, and what is said about it."""

from __future__ import annotations

import logging

from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    Sampler,
    StaticSampler,
    TraceIdRatioBased,
)

from otel_loopguard.sampling.recording import RecordDropped

_DROPS = (
    "the sampler {} drops spans before the guard can see them, so runs that are not sampled are "
    "neither watched nor stopped; otel_loopguard.record_dropped(provider) shows them to the guard "
    "and exports none"
)

_logger = logging.getLogger(__name__)


def can_drop(sampler: object) -> bool:
    """Say whether a sampler of the SDK may drop GenAI spans that nobody outside asked it to drop.

    `ParentBased` follows callers that do not sample; that is what it is for, and is not meant here.
    Samplers that are not known are taken not to drop: their answers say nothing about the next one,
    asking may use up their rate, and a warning that is mostly wrong is soon read by nobody.
    """
    if isinstance(sampler, ParentBased):
        return _can_drop_by_parent(sampler)
    if isinstance(sampler, TraceIdRatioBased):
        return sampler.rate < 1
    return isinstance(sampler, StaticSampler) and _answer(sampler) is Decision.DROP


def drop_warning(sampler: object) -> str | None:
    """Return what to say to those who attach a guard behind this sampler; `None` if nothing."""
    if isinstance(sampler, Sampler) and can_drop(sampler):
        return _DROPS.format(sampler.get_description())
    return None


def sampler_of(span: object) -> object:
    """Return the sampler that let a span through; the global one where that is not known."""
    # Not public, but exact: the guard may be attached to another provider than the global one.
    sampler = getattr(span, "_sampler", None)
    return _global_sampler() if sampler is None else sampler


class DropWarning:
    """Says once that spans are dropped before a guard can see them.

    No provider tells a processor that it has been attached to it, so this looks where something
    is seen: at the first span of a run, and at a model request below a span that was dropped.
    """

    def __init__(self) -> None:
        self._is_said = False

    def seen(self, span: object) -> None:
        """Look at the sampler of a span that has reached the guard."""
        self._judge(sampler_of(span))

    def requested(self, span: trace.Span) -> None:
        """Look at the global sampler if a model request is made below a span that was dropped."""
        context = span.get_span_context()
        if isinstance(span, trace.NonRecordingSpan) and context.is_valid and not context.is_remote:
            self._judge(_global_sampler())

    def _judge(self, sampler: object) -> None:
        warning = None if self._is_said else drop_warning(sampler)
        if warning is not None:
            self._is_said = True
            _logger.warning("%s", warning)


def _global_sampler() -> object:
    return getattr(trace.get_tracer_provider(), "sampler", None)


def _can_drop_by_parent(sampler: ParentBased) -> bool:
    delegates = ("_root", "_remote_parent_sampled", "_local_parent_sampled")
    if any(can_drop(getattr(sampler, name, None)) for name in delegates):
        return True
    # A root that is recorded, not sampled: what hangs below it is dropped all the same.
    below = getattr(sampler, "_local_parent_not_sampled", None)
    return _leaves_unsampled(getattr(sampler, "_root", None)) and can_drop(below)


def _leaves_unsampled(sampler: object) -> bool:
    if isinstance(sampler, RecordDropped):
        return _leaves_unsampled(sampler.root)
    if isinstance(sampler, StaticSampler):
        return _answer(sampler) is not Decision.RECORD_AND_SAMPLE
    return can_drop(sampler)


def _answer(sampler: StaticSampler) -> Decision:
    """Return what a sampler answers that answers the same always."""
    return sampler.should_sample(None, 0, "").decision
