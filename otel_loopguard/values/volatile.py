"""What changes by nature from one call to the next, and is left out when results are compared.

Works on the canonical text of a value (`otel_loopguard.canonical`). Each volatile part is replaced
by a mark that names its kind, `<time>` or `<uuid>`: parts of different kinds stay different. What
may be the news that an agent waits for stays: counts, progress, pages, versions, dates without a
time of day. `docs/results.md` has the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from otel_loopguard.values._volatile_parts import (
    shape,
    without_exact_times,
    without_identifiers,
    without_passing_identifiers,
    without_times,
)

DURATION_KEYS: Final = (
    "cpu_time",
    "duration",
    "elapsed",
    "elapsed_time",
    "execution_time",
    "latency",
    "processing_time",
    "query_time",
    "response_time",
    "time_taken",
    "took",
    "uptime",
    "wall_time",
)
"""Keys of durations; each also with one of `DURATION_UNITS` at its end."""

DURATION_UNITS: Final = (
    *("s", "sec", "secs", "seconds", "in_seconds"),
    *("ms", "msec", "msecs", "millis", "milliseconds", "in_ms"),
    *("us", "micros", "microseconds", "ns", "nanos", "nanoseconds"),
)

MOMENT_KEYS: Final = (
    "checked_at",
    "completed_at",
    "created_at",
    "current_time",
    "ended_at",
    "fetched_at",
    "finished_at",
    "generated_at",
    "queried_at",
    "received_at",
    "requested_at",
    "responded_at",
    "retrieved_at",
    "sent_at",
    "server_time",
    "started_at",
    "timestamp",
    "timestamp_ms",
    "ts",
)
"""Keys of moments at which a call, or what it started, happened."""

IDENTIFIER_KEYS: Final = (
    "call_id",
    "correlation_id",
    "execution_id",
    "invocation_id",
    "message_id",
    "msg_id",
    "nonce",
    "parent_span_id",
    "pid",
    "ppid",
    "process_id",
    "request_id",
    "response_id",
    "span_id",
    "thread_id",
    "tool_call_id",
    "trace_id",
    "traceparent",
    "x_request_id",
)
"""Keys of names that are given anew to each call or process."""


def bare(key: str) -> str:
    """Return a key as keys are compared: without case, `_` and `-`."""
    return key.replace("_", "").replace("-", "").lower()


_KEYS: Final = frozenset(
    map(
        bare,
        (
            *DURATION_KEYS,
            *(key + unit for key in DURATION_KEYS for unit in DURATION_UNITS),
            *MOMENT_KEYS,
            *IDENTIFIER_KEYS,
        ),
    )
)

KEY_NAME: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
"""What the name of a key looks like, in results and in `masking.keys`."""
_KEY: Final = re.compile(rb"""["'](%b)\\*["'] ?:""" % KEY_NAME.encode())
_VALUE: Final = re.compile(
    rb""" ?(?:-?[0-9][0-9.eE+-]{0,40}(?=[],}\s\\"'])|"[^"\\]*(?:\\.[^"\\]*)*\""""
    rb"""|\\"[^"\\]*\\"|'[^'\\]*')"""
)
"""A number or a string, also one of JSON or Python inside a string."""


class Masking(msgspec.Struct, frozen=True, kw_only=True):
    """What is masked before results, and arguments whose results agree, are compared.

    Attributes:
        enabled: whether anything is masked.
        keys: further keys whose values are volatile; case, `_` and `-` do not matter.
        patterns: further regular expressions of `re`; what they match is volatile.

    Raises:
        ValueError: if a pattern is no regular expression, or a key has other characters than
            ASCII letters, digits, `_`, `-` and `.`.

    """

    enabled: bool = True
    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Fail now rather than at the first result."""
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(
                    f"masking.patterns: {pattern!r} is no regular expression: {error}"
                ) from error
        for key in self.keys:
            if not re.fullmatch(KEY_NAME, key):
                raise ValueError(
                    f"masking.keys: {key!r} is no key; expected a letter, then letters, digits, "
                    "'_', '-' and '.', at most 64 in all"
                )

    def masked_result(self, text: bytes) -> bytes:
        """Return the canonical text of a result without what is volatile in it."""
        if not self.enabled:
            return text
        seen = shape(text)
        keyed = _without_values(text, self.keys) if b'":' in seen else text
        masked = without_times(without_identifiers(keyed), seen)
        return _without_matches(masked, self.patterns) if self.patterns else masked

    def masked_arguments(self, text: bytes) -> bytes:
        """Return the canonical text of arguments without what is volatile in any argument.

        To be used only where the results agree as well. An identifier that is a whole value stays,
        and so do numbers, durations, dates, and times to the minute: they say what is asked for.
        """
        if not self.enabled:
            return text
        masked = without_exact_times(without_passing_identifiers(text), shape(text))
        return _without_matches(masked, self.patterns) if self.patterns else masked


def _without_values(text: bytes, extra: tuple[str, ...]) -> bytes:
    """Mask the numbers and strings under volatile keys."""
    is_volatile = _recognizer(extra)
    if not any(map(is_volatile, _KEY.findall(text))):
        return text
    parts: list[bytes] = []
    done = 0
    for key in _KEY.finditer(text):
        if key.start() < done or not is_volatile(key[1]):
            continue
        value = _VALUE.match(text, key.end())
        if value is not None:
            parts += text[done : key.end()], b"<volatile>"
            done = value.end()
    return b"".join((*parts, text[done:]))


@lru_cache(maxsize=64)
def _recognizer(extra: tuple[str, ...]) -> Callable[[bytes], bool]:
    keys = _KEYS.union(map(bare, extra))

    @lru_cache(maxsize=4096)
    def is_volatile(key: bytes) -> bool:
        return bare(key.decode()) in keys

    return is_volatile


def _without_matches(text: bytes, patterns: tuple[str, ...]) -> bytes:
    """Mask what the user's patterns match; an empty match is none."""
    shown = text.decode(errors="surrogateescape")
    for pattern in patterns:
        shown = re.sub(pattern, lambda match: "<masked>" if match[0] else "", shown)
    return shown.encode(errors="surrogateescape")
