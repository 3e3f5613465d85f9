"""Sampling: what a guard needs to see of the spans that a sampler leaves out."""

from __future__ import annotations

from otel_loopguard.sampling.dropping import (
    DropWarning,
    can_drop,
    drop_warning,
    sampler_of,
)
from otel_loopguard.sampling.named import from_environment
from otel_loopguard.sampling.providers import record_dropped
from otel_loopguard.sampling.recording import RecordDropped

__all__ = [
    "DropWarning",
    "RecordDropped",
    "can_drop",
    "drop_warning",
    "from_environment",
    "record_dropped",
    "sampler_of",
]
