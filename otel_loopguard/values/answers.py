"""When an answer is that there is nothing, and when two requests ask for the same thing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeGuard, cast

import msgspec

from otel_loopguard.values.volatile import Masking, bare

_Members: TypeAlias = dict[str, Any]

_SHORT: Final = 200
"""Bytes of an answer that may be one of nothing."""
_THING: Final = (
    r"(?:results?|match|matches|hits?|records?|rows?|items?|entry|entries|documents?|files?|data"
    r"|information|pages?|articles?|products?|users?|customers?|orders?|flights?|hotels?|emails?"
    r"|messages?|events?|answers?|tickets?|papers?|links?|lines?|occurrences?|references?)"
)
_NOTHING: Final = re.compile(
    rf"""
    \W*(?:(?:sorry|ok|success|results?|search|query|output|answer)\W+)?(?:
        (?:(?:i|we|it|there|(?:the\ |your\ )?(?:search|query))\ (?:was|were|is|are|have|has)?\ ?)?
        (?:found|returned|yielded|matched|got|with)?\ ?
        (?:no|zero|0)\ (?!such\b)(?:[a-z-]{{1,20}}\ ){{0,2}}?{_THING}\b
        (?:\W*$|\W+(?:were|was|are|is|have|has|found|return|returned|available|match|matched|matches
            |matching|exist|exists|for|in|with|that|on|at|about|from)\b.*)
      | (?:(?!error|fail)[^.!?\n]){{0,120}}\bnot\ found\b\W*$
      | not\ found\b.*
      | no(?:thing|ne)\ (?:was\ |were\ )?(?:found|matched|matches)\b.*
      | (?:(?:i|we)\ )?(?:could\ not|couldn't|did\ not|didn't)\ (?:find|match)\ .*
      | no\ (?:matches|match|results|hits)\W*$
      | empty(?:\ (?:list|result|results|set|directory|response))?\W*$
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_WAITING: Final = re.compile(r"\b(?:yet|still|running|pending|in progress)\b", re.IGNORECASE)
_COUNTS: Final = re.compile(
    r"(?:total|num|number|n)?(?:count|counts|total|hits|matches|results|found|length|size|rows|items"
    r"|pages|records)(?:count|results|hits|found|size|pages|items)?"
)
_ASIDES: Final = frozenset(
    {
        *(
            "query",
            "q",
            "search",
            "term",
            "keyword",
            "filter",
            "page",
            "limit",
            "offset",
            "perpage",
        ),
        *("pagesize", "status", "ok", "success", "message", "hasmore", "took", "tookms", "code"),
        *("durationms", "elapsed", "requestid", "timestamp", "truncated", "next", "nextpage"),
        *("cursor", "nextcursor", "nextpagetoken", "type", "object", "kind"),
    }
)
"""Keys that may stand beside an empty list, compared without case, `_` and `-`."""
_VERDICTS: Final = re.compile(
    r"error|warning|problem|issue|violation|failure|failed|conflict|diagnostic|alert|vulnerabilit"
    r"|finding|diff|change|missing|invalid|duplicate"
)
"""Words in keys of lists that are better empty: none found is what was hoped for."""


def found_nothing(text: bytes) -> bool:
    """Whether a canonical result says that there is nothing: `[]`, "No results found for x".

    An empty text and `null` do not say it (a command without output, a function without a result),
    and neither does a check that found no fault. Only texts of at most 200 bytes can say it.
    """
    if len(text) > _SHORT:
        return False
    first = text[:1]
    if first == b'"':
        return len(text) > 4 and _says_nothing(_decoded(text))  # noqa: PLR2004 - `"ok"`
    return first in (b"[", b"{") and _is_nothing(_decoded(text), layers=3)


def _is_members(content: object) -> TypeGuard[_Members]:
    return isinstance(content, dict)


def _decoded(text: bytes | str) -> object:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError, msgspec.DecodeError):
        return None


def _says_nothing(content: object, layers: int = 3) -> bool:
    if not isinstance(content, str):
        return False
    text = content.strip()
    if text[:1] in ("[", "{"):
        return _is_nothing(_decoded(text), layers)
    return _NOTHING.match(text) is not None and not _WAITING.search(text)


def _is_nothing(content: object, layers: int) -> bool:
    """Whether data is empty, or holds nothing but empty lists, zero counts and asides."""
    if layers == 0 or not isinstance(content, (list, dict)):
        return False
    if not content:
        return True
    if isinstance(content, list):  # the parts of a message
        parts = cast("list[object]", content)
        part = parts[0]
        return (
            len(parts) == 1
            and isinstance(part, dict)
            and "text" in part
            and _is_nothing(cast("_Members", part), layers - 1)
        )
    found = False
    for key, item in cast("_Members", content).items():
        name = bare(key)
        if _says_nothing(item, layers - 1):
            found = True
        elif item in ([], {}) or (type(item) is int and item == 0 and _COUNTS.fullmatch(name)):
            if _VERDICTS.search(name):
                return False
            found = True
        elif item is None or item is False or item == "":
            continue
        elif name not in _ASIDES or isinstance(item, (list, dict)):
            return False
    return found


_LONGEST: Final = 2000
"""Bytes of arguments that are compared by their parts."""
_WORDS: Final = 60
"""Words of a text that may be put in other words; a longer one is content."""
_OVERLAP: Final = 0.6
_EDGES: Final = ".,;:!?\"'()[]{}<>\u2026\u00ab\u00bb\u201c\u201d\u2018\u2019"
_FILLERS: Final = frozenset(
    ("a", "an", "and", "are", "for", "in", "is", "of", "on", "please", "the", "what")
)
_CALL_KEYS: Final = frozenset(
    map(
        bare,
        (
            *("client_token", "correlation_id", "idempotency_key", "nonce", "request_id"),
            *("timestamp", "traceparent", "x_request_id"),
        ),
    )
)
"""Keys of names and moments of the call itself, where another argument says what it is about."""
_MADE: Final = re.compile(r"(?=(?:[^0-9]*[0-9]){6})[0-9A-Za-z:._+-]{16,128}")
_EARLIEST: Final = 1_000_000_000
"""Seconds since 1970: a smaller number is no moment."""
_MASKING: Final = Masking()


def nearly_equal(one: bytes, other: bytes, masking: Masking = _MASKING) -> bool:
    """Whether two canonical texts of arguments ask for the same thing in other words.

    What may name a thing is equal: numbers, single words, paths, options, words with digits, lists
    and texts of several lines. Prose may differ in order and in some words, unless it is a pattern
    with other words filled in. To be used only where the results agree.
    """
    if one == other:
        return True
    if len(one) > _LONGEST or len(other) > _LONGEST:
        return False
    masked, its_masked = masking.masked_arguments(one), masking.masked_arguments(other)
    if masked == its_masked:
        return True
    content, its_content = _decoded(masked), _decoded(its_masked)
    try:
        if _is_members(content) and _is_members(its_content):
            return _same_request(content, its_content)
        return content is not None and _same(content, its_content)
    except RecursionError:  # pragma: no cover -- nothing that people ask for is so deep
        return False


def _same_request(one: _Members, other: _Members) -> bool:
    if one.keys() != other.keys():
        return False
    own = {key for key in one if bare(key) in _CALL_KEYS and one[key] != other[key]}
    if not all(_is_made(one[key]) and _is_made(other[key]) for key in own):
        return False
    if own and not any(_names(one[key]) for key in one if bare(key) not in _CALL_KEYS):
        return False
    return all(_same(one[key], other[key]) for key in one if key not in own)


def _is_made(value: object) -> bool:
    """Whether a value looks made by a program, not given by a person."""
    if isinstance(value, str):
        return _MADE.fullmatch(value) is not None
    return type(value) is int and value >= _EARLIEST


def _names(value: object) -> bool:
    """Whether an argument says what a call is about."""
    if isinstance(value, str):
        return " " in value.strip() or any(map(str.isdigit, value)) or "/" in value
    return type(value) in (int, float)


def _same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        mine, its = cast("_Members", one), cast("_Members", other)
        return mine.keys() == its.keys() and all(_same(mine[key], its[key]) for key in mine)
    if isinstance(one, list):
        items, its_items = cast("list[object]", one), cast("list[object]", other)
        return len(items) == len(its_items) and all(map(_same, items, its_items))
    if isinstance(one, str):
        return one == other or _same_words(one, cast("str", other))
    return one == other


def _same_words(one: str, other: str) -> bool:
    if "\n" in one.strip() + other.strip():
        return False
    words, its_words = one.casefold().split(), other.casefold().split()
    counts = len(words), len(its_words)
    is_prose = min(counts) > 1 and max(counts) <= _WORDS
    return words == its_words or (is_prose and _reworded(words, its_words))


def _reworded(words: list[str], its_words: list[str]) -> bool:
    """Whether words are nearly the same, in any order, and none that may name a thing differs."""
    mine, its = _content(words), _content(its_words)
    added, lost = set(its).difference(mine), set(mine).difference(its)
    if "name" in map(_kind, added | lost):
        return False
    if "number" in map(_kind, added) and "number" in map(_kind, lost):
        return False  # one may be added ("weather 2021"), but not put in place of another
    if added and lost and _is_filled_in(mine, its, added, lost):
        return False
    return len(set(mine).intersection(its)) >= _OVERLAP * len(set(mine).union(its))


def _content(words: list[str]) -> list[str]:
    stripped = [word.strip(_EDGES) or word for word in words]
    return [word for word in stripped if word not in _FILLERS]


def _is_filled_in(one: list[str], other: list[str], added: set[str], lost: set[str]) -> bool:
    """Whether texts are one pattern with other words at the same places: each asks for another."""
    return len(one) == len(other) and all(
        word == its_word or (word in lost and its_word in added)
        for word, its_word in zip(one, other, strict=True)
    )


_NAME: Final = re.compile(r"[/\\@_#$=*|<>~]|^-|[^.:].*[.:].*[^.:]")
_NUMBER: Final = re.compile(r"[0-9]")


@lru_cache(maxsize=2048)
def _kind(word: str) -> str:
    """Return what a word is: a name or an option, something with a number, or a plain word."""
    return "name" if _NAME.search(word) else "number" if _NUMBER.search(word) else "word"
