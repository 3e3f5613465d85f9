"""Parts of a text that are volatile by what they are, wherever they stand: times, durations, names.

The time that patterns take grows with the length of the text, no faster: repetitions have bounds.
The slow ones run only where a cheap look at the shape of a text, in which every digit is `0`, says
that there may be something for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

_DIGITS: Final = b"0123456789"
_SHAPE: Final = bytes.maketrans(_DIGITS + b"mhnu\xc2\xce'", b"0" * 10 + b"ssssss" + b'"')
_HEX_SHAPE: Final = bytes.maketrans(_DIGITS + b"abcdefABCDEF", b"0" * 22)

# A part begins where no word goes on; in JSON strings the escape of a line break ends in a letter.
_BEGIN: Final = rb"(?:(?<![0-9A-Za-z_.])(?<![0-9]:)|(?<=\\[nrt]))"
# The same, looked at behind the first digit: a search for a digit is many times faster.
_DIGIT: Final = rb"[0-9](?:(?<![0-9A-Za-z_.][0-9])(?<![0-9]:[0-9])|(?<=\\[nrt][0-9]))"
_END: Final = rb"(?![0-9A-Za-z_])(?!:[0-9])"

_SECONDS: Final = rb":[0-6][0-9](?:[.,][0-9]{1,9})?"
_ZONE: Final = rb"(?: ?[AaPp][Mm])?(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?"
_BETWEEN: Final = rb"(?:[T_:]|,? (?:at )?)[0-9]"
"""What stands between a date and a time, and the first digit of the time."""
_MONTH: Final = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE: Final = (
    rb"(?:[0-9]{3}[-/.][0-9]{1,2}[-/.][0-9]{1,2}"  # 2026-11-29
    rb"|[0-9]?[-/.][0-9]{1,2}[-/.][0-9]{4}"  # 29.11.2026
    rb"|[0-9]?[ /-]" + _MONTH + rb"[a-z]{0,6}\.?[ /-][0-9]{4})"  # 29 Nov 2026, 29/Nov/2026
) + _BETWEEN
_DAY: Final = (
    _MONTH + rb"(?:(?<![0-9A-Za-z_.][A-Za-z]{3})|(?<=\\[nrt][A-Za-z]{3}))"
    rb"[a-z]{0,6}\.? {1,2}[0-9]{1,2}(?:,? [0-9]{4})?"  # Nov 29; November 29, 2026
) + _BETWEEN
_COMPACT: Final = rb"(?<=2)0[0-9]{2}[01][0-9][0-3][0-9][T_-]?[0-2][0-9][0-5][0-9][0-6][0-9]Z?"


def _stamps(seconds: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what finds dates with a time of day, and times of day to the second."""
    time = rb"[0-9]?:[0-5][0-9]" + seconds + _ZONE
    exact = rb"[0-9]?:[0-5][0-9]" + _SECONDS + _ZONE
    return (
        re.compile(_DAY + time + _END),
        re.compile(rb"%b(?:%b%b|%b|%b)%b" % (_DIGIT, _DATE, time, exact, _COMPACT, _END)),
    )


_STAMPS: Final = _stamps(rb"(?:%b)?" % _SECONDS)
_EXACT_STAMPS: Final = _stamps(_SECONDS)

_UNIT: Final = (
    rb"(?:[num]s|\xc2\xb5s|\xce\xbcs|s|secs?|seconds?|msecs?|milliseconds?|microseconds?"
    rb"|nanoseconds?|mins?|minutes?|hrs?|hours?)"
)
_DURATIONS: Final = re.compile(
    rb"%b(?:(?!(?<=1)9[0-9]0s|(?<=2)0[0-9]0s)"  # not the 1990s
    rb"[0-9,]{0,15}(?:\.[0-9]{1,15})? ?%b"
    rb"|[0-9]{0,5}(?:h|m| ?hrs?| ?hours?| ?mins?| ?minutes?)(?:,? ?(?:and )?"
    rb"[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|m|s| ?mins?| ?minutes?| ?secs?| ?seconds?)){1,3})%b"
    % (_DIGIT, _UNIT, _END)
)
_DURATION_HINT: Final = re.compile(rb"[0-9](?: ?%b(?![A-Za-z])|[hm][0-9 ,])" % _UNIT)
_AHEAD_BEFORE: Final = re.compile(rb"(?:eta|remaining|left|remains)[ :=~(]{0,4}$", re.IGNORECASE)
_AHEAD_AFTER: Final = re.compile(rb"[ )]{0,2}(?:remaining|remain|left|to go)\b", re.IGNORECASE)

_EPOCH: Final = re.compile(
    rb"(?<![0-9A-Za-z_.+/$#%-])1[0-9]{9}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]{1,9})?"
    rb"(?![0-9A-Za-z_%/]|\.[0-9]| [A-Za-z%/])"
)
_RECENT: Final = (b"17", b"18")
"""How the seconds begin of what is taken for a moment outside of any member: 2023 to 2030."""
_FREE: Final = (b"", b" ", b'"', b"(", b"@", b"'")
_MEMBER: Final = re.compile(rb"""["']([A-Za-z][A-Za-z0-9_.-]{0,63})\\*["'] ?: ?\\*["']?$""")
_MOMENT_NAME: Final = re.compile(
    rb"(?:at|ts|exp|iat|[A-Za-z0-9_.-]{0,60}(?:At|[_-]at|(?i:time|date|stamp|epoch|created|updated|modified"
    rb"|expires|expiry|now|since|until))(?:_?(?:ms|s))?)"
)

_HEX: Final = rb"[0-9A-Fa-f]"
_UUIDS: Final = re.compile(rb"%b%b{8}-(?:%b{4}-){3}%b{12}%b" % (_BEGIN, _HEX, _HEX, _HEX, _END))
_ADDRESSES: Final = re.compile(rb"%b0x%b{4,16}%b" % (_BEGIN, _HEX, _END))
_HASHES: Final = re.compile(rb"%b(?:%b{64}|%b{40}|%b{32})%b" % (_BEGIN, _HEX, _HEX, _HEX, _END))
_DASHES: Final = 4
"""Dashes in a UUID."""
_QUOTED: Final = re.compile(rb"""(?:^|[:,[{(]) ?\\*["']$""")
_JOINTS: Final = (b"/", b"\\", b"-", b":", b"=")
_JOINED: Final = re.compile(rb"[/:-]|\.[0-9A-Za-z]")


def shape(text: bytes) -> bytes:
    """Return a text with `0` for each digit, `s` for first letters of units, one kind of quotes."""
    return text.translate(_SHAPE)


def without_identifiers(text: bytes) -> bytes:
    """Mask UUIDs and memory addresses."""
    masked = _UUIDS.sub(b"<uuid>", text) if _may_hold_uuid(text) else text
    return _ADDRESSES.sub(b"<address>", masked) if b"0x" in masked else masked


def without_passing_identifiers(text: bytes) -> bytes:
    """Mask UUIDs, hashes and addresses that are words of a longer text, not values or names."""
    masked = text
    if _may_hold_uuid(text):
        masked = _UUIDS.sub(_unless_meant(b"<uuid>"), masked)
    if b"0x" in masked:
        masked = _ADDRESSES.sub(_unless_meant(b"<address>"), masked)
    if b"0" * 32 in masked.translate(_HEX_SHAPE):
        masked = _HASHES.sub(_unless_meant(b"<hash>"), masked)
    return masked


def without_times(text: bytes, seen: bytes) -> bytes:
    """Mask moments and durations in a text that had the shape `seen`."""
    masked, has_long_number = text, b"00000000" in seen
    if has_long_number or b"0:00" in seen:
        for stamps in _STAMPS:
            masked = stamps.sub(b"<time>", masked)
    if (b"0s" in seen or b"0 s" in seen) and _DURATION_HINT.search(masked):
        masked = _DURATIONS.sub(_duration, masked)
    return _EPOCH.sub(_moment, masked) if b"0000000000" in seen else masked


def without_exact_times(text: bytes, seen: bytes) -> bytes:
    """Mask moments that are given to the second in a text that had the shape `seen`."""
    masked = text
    if b"0:00:00" in seen or b"00000000" in seen:
        for stamps in _EXACT_STAMPS:
            masked = stamps.sub(b"<time>", masked)
    return masked


def moments_in(text: str) -> list[tuple[int, int]]:
    """Return begin and end of the moments that are given by date or time of day, in their order."""
    encoded = text.encode(errors="surrogatepass")
    taken = bytearray(len(encoded))
    found: list[tuple[int, int]] = []
    for stamps in _STAMPS:
        for match in stamps.finditer(encoded):
            start, end = match.span()
            if not any(taken[start:end]):
                taken[start:end] = b"\x01" * (end - start)
                found.append((start, end))
    places: list[int] = []
    read = characters = 0
    for place in (place for span in sorted(found) for place in span):
        characters += len(encoded[read:place].decode(errors="surrogatepass"))
        places.append(characters)
        read = place
    return list(zip(places[::2], places[1::2], strict=True))


def _may_hold_uuid(text: bytes) -> bool:
    return text.count(b"-") >= _DASHES and b"0-0000-0000-" in text.translate(_HEX_SHAPE)


def _unless_meant(mark: bytes) -> Callable[[re.Match[bytes]], bytes]:
    """Return what masks an identifier, unless it is a whole value or part of a path or name."""

    def masked(match: re.Match[bytes]) -> bytes:
        text, start, end = match.string, match.start(), match.end()
        near = text[max(start - 8, 0) : start]
        closed = text[end : end + 8].lstrip(b"\\")[:1] in (b'"', b"'")
        if (closed and _QUOTED.search(near)) or near.endswith(_JOINTS) or _JOINED.match(text, end):
            return match[0]
        return mark

    return masked


def _duration(match: re.Match[bytes]) -> bytes:
    """Mask a duration, but not one that is still to come: a countdown is progress."""
    text, start = match.string, match.start()
    ahead = _AHEAD_AFTER.match(text, match.end()) or _AHEAD_BEFORE.search(
        text, max(start - 14, 0), start
    )
    return match[0] if ahead else b"<duration>"


def _moment(match: re.Match[bytes]) -> bytes:
    """Mask a count of seconds since 1970, or of their parts, that is one by its key or its size."""
    text, start = match.string, match.start()
    before = text[max(start - 72, 0) : start]
    member = _MEMBER.search(before)
    if member is not None:
        return b"<time>" if _names_moment(member[1]) else match[0]
    return b"<time>" if before[-1:] in _FREE and match[0].startswith(_RECENT) else match[0]


@lru_cache(maxsize=1024)
def _names_moment(key: bytes) -> bool:
    return _MOMENT_NAME.fullmatch(key) is not None
