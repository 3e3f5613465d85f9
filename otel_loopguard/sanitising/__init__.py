"""Fixtures from recordings: the same runs, without what was said in them."""

from __future__ import annotations

from otel_loopguard.sanitising.recordings import BEGIN_S, RecordedLine, Recording
from otel_loopguard.sanitising.tokens import asked_words

__all__ = ["BEGIN_S", "RecordedLine", "Recording", "asked_words"]
