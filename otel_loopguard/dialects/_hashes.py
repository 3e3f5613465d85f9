"""Reads the hash that stands on a span for a value which was not to leave its process."""

from __future__ import annotations

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.dialects._values import content, text
from otel_loopguard.spans import SpanRecord

_HEX_TO_LETTERS = str.maketrans("0123456789abcdefABCDEF", "ghijklmnopqrstuvqrstuv")


def hash_of(record: SpanRecord, name: str) -> object:
    """Return a text that stands for the hash in `name`; `UNKNOWN` if there is none."""
    digest = text(content(record.attributes.get(name), record.value_length_limit))
    # Letters beyond f: what is masked as volatile in a value (numbers, hex, UUIDs) is not this.
    return f"hash:{digest.translate(_HEX_TO_LETTERS)}" if digest else UNKNOWN
