"""Wrapping the sampler of a provider that exists already."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

from opentelemetry.sdk.trace.sampling import Sampler

from otel_loopguard.sampling.recording import RecordDropped, Recorded

_NO_SAMPLER = (
    "%s has no sampler that could be wrapped, so spans that are not sampled stay unseen; give the "
    "provider a sampler of its own: RecordDropped(ParentBased(...))"
)
_FIXED = (
    "the sampler of %s cannot be replaced (%s), so spans that are not sampled stay unseen; give "
    "the provider a sampler of its own: RecordDropped(ParentBased(...))"
)
_NO_TRACERS = (
    "with this version of the SDK, tracers that exist already keep their sampler: call "
    "record_dropped before instrumentations are switched on, or make the provider with "
    "RecordDropped"
)

_logger = logging.getLogger(__name__)


def record_dropped(provider: object, *, spans: Recorded = "runs") -> bool:
    """Let the guard see the spans that a provider's sampler drops; say whether that is done.

    The sampler of the provider and those of the tracers that it has made are wrapped in
    `RecordDropped`, once. A provider without a sampler is left alone, and a warning logged.

    Raises:
        ValueError: if there is no such choice of spans.

    """
    # Tracers copy the sampler when they are made, so each has to be given the new one.
    target: Any = provider
    sampler = getattr(target, "sampler", None)
    if not isinstance(sampler, Sampler):
        _logger.warning(_NO_SAMPLER, _name_of(provider))
        return False
    wrapped = _wrapped(sampler, spans)
    if wrapped is sampler:
        _wrap_tracers(target, sampler, wrapped, spans)
        return True
    try:
        target.sampler = wrapped
    except (AttributeError, TypeError) as error:
        _logger.warning(_FIXED, _name_of(provider), error)
        return False
    if not _wrap_tracers(target, sampler, wrapped, spans):
        _logger.warning(_NO_TRACERS)
    return True


def _wrap_tracers(provider: Any, sampler: Sampler, wrapped: Sampler, spans: Recorded) -> bool:
    """Wrap the samplers of the tracers; say whether the provider knows which there are."""
    # Not public, but nothing else leads to them.
    tracers: dict[object, Any] | None = getattr(provider, "_tracers", None)
    if tracers is None:
        return False
    with getattr(provider, "_tracers_lock", None) or nullcontext():
        for tracer in tuple(tracers.values()):
            own = getattr(tracer, "sampler", None)
            if isinstance(own, Sampler):
                tracer.sampler = wrapped if own is sampler else _wrapped(own, spans)
    return True


def _wrapped(sampler: Sampler, spans: Recorded) -> Sampler:
    return sampler if isinstance(sampler, RecordDropped) else RecordDropped(sampler, spans=spans)


def _name_of(provider: object) -> str:
    kind = type(provider)
    return f"{kind.__module__}.{kind.__qualname__}"
