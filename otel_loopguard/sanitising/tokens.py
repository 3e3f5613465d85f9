"""What a text is made of: words, numbers, durations, addresses, escapes, counts of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final
from unicodedata import category, normalize

_UNIT: Final = (
    r"(?:[num\u00b5\u03bc]s|s|secs?|seconds?|msecs?|milliseconds?|microseconds?|nanoseconds?|mins?"
    r"|minutes?|hrs?|hours?|h|m)"
)
_COUNTED: Final = (
    r"input|output|prompt|completion|total|reasoning|cached?|read|write|creation|candidates"
    r"|thoughts?|thinking|tool|use|content|text|audio|image|video|accepted|rejected|prediction"
    r"|billed|budget|max"
)
_CAPITALS: Final = re.sub("[a-z]+", lambda word: word[0].capitalize(), _COUNTED)
_USAGE: Final = (
    rf"(?:(?:{_COUNTED})_){{1,6}}tokens|(?:(?:{_COUNTED})_){{0,6}}cache_(?:read|creation)|total_cost"
    rf"|(?:{_COUNTED})(?:{_CAPITALS}){{0,5}}(?:TokenCount|Tokens)"
)
"""Keys of counts of tokens, and of costs. Other tokens open doors."""
_SUBWORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+")
_PLANES: Final = 0x20000
"""Behind these characters there are marks for variants of others only."""


@cache
def tokens() -> re.Pattern[str]:
    """Return what finds the tokens of a text, each in a group of its kind."""
    return re.compile(
        rf"""
          (?P<counted>(?<![0-9A-Za-z_])(?:{_USAGE})\\*["']?\s?[:=]\s?\\*["']?[0-9]+(?:\.[0-9]+)?
              (?![0-9A-Za-z_.]))
        | (?P<power>(?<![\w.])[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{{1,3}}(?!\w))
        | (?P<decade>(?<![0-9A-Za-z])(?:19|20)[0-9]0s(?![0-9A-Za-z]))
        | (?P<lasting>(?<![0-9A-Za-z])(?:[0-9]+{_UNIT})+(?![0-9A-Za-z]))
        | (?P<address>(?<![0-9A-Za-z])0x[0-9A-Fa-f]+(?![0-9A-Za-z]))
        | (?P<escape>\\(?:u[0-9A-Fa-f]{{4}}|[nrtbf]))
        | (?P<run>[^\W_]+(?:(?<=[^\W\d_])[{_marks()}]+[^\W_]*)*)
        """,
        re.VERBOSE,
    )


def subwords(run: str) -> Iterator[re.Match[str]]:
    """Yield the words of letters from A to Z that are written as one."""
    return _SUBWORDS.finditer(run)


def words_in(text: str) -> frozenset[str]:
    """Return the words in a name, whole and apart, in lower case."""
    runs = [match["run"] or "" for match in tokens().finditer(text)]
    parts = [part[0] for run in runs for part in subwords(run)]
    return frozenset(word.lower() for word in (*runs, *parts))


def asked_words(text: str) -> frozenset[str]:
    """Return the words that are to be kept where somebody asks for `text`; none if it has none.

    `buyer_no` and `buyerNo` are two words each, `k8s` is one.
    """
    found: set[str] = set()
    for match in tokens().finditer(normalize("NFC", text)):
        run = match["run"]
        if run is None or run.isdigit():
            continue
        if run.isascii() and run.isalpha():
            found.update(part[0].lower() for part in subwords(run))
        else:
            found.update((run.lower(), run.casefold()))
    return frozenset(found)


def is_usage(key: str) -> bool:
    """Say whether a key is that of a count of tokens, or of a cost."""
    return re.fullmatch(_USAGE, key) is not None


def _marks() -> str:
    """Return what goes on a word behind a letter, for a class of a pattern: accents, joiners."""
    return "\u200c\u200d" + "".join(filter(_is_mark, map(chr, range(_PLANES))))


def _is_mark(character: str) -> bool:
    return category(character).startswith("M")
