"""Stopping a run: the built-in stops, the user's hooks, and what the caller gets."""

from __future__ import annotations

from otel_loopguard.abort.aborted import RunAborted, RunInterrupted, abort_of
from otel_loopguard.abort.boundary import guarded_run
from otel_loopguard.abort.hooks import AbortHook, AbortRequest
from otel_loopguard.abort.process_signal import signal_process
from otel_loopguard.abort.webhook import webhook

__all__ = [
    "AbortHook",
    "AbortRequest",
    "RunAborted",
    "RunInterrupted",
    "abort_of",
    "guarded_run",
    "signal_process",
    "webhook",
]
