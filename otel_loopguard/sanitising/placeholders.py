"""What stands in place of a word, a number or an identifier: something else of the same kind.

The same gives the same, different ones give different ones, and what is drawn has the length and
the kinds of characters of what it stands for: what looked like a number, a name or a hash still
does, and nothing begins to look like a duration or a known word. It is drawn by a keyed hash, so
that nobody can try out a guess without the key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count, product
from string import ascii_lowercase, digits
from typing import Final

from otel_loopguard.sanitising.known_words import KNOWN_WORDS

_HEX_LETTERS: Final = "abcdef"
_HEX: Final = frozenset(digits + _HEX_LETTERS)
_EPOCH_LENGTHS: Final = frozenset({10, 13, 16, 19})
"""Digits of seconds since 1970, and of their parts."""
_RECENT: Final = ("17", "18")
_LONGEST_INT: Final = 19
"""Digits of the largest 64-bit number, which begins with 9."""
_STATUS_LENGTH: Final = 3
_TRIES: Final = 64
_ODD: Final = re.compile(r"0x[0-9a-f]+|[0-9]+e[0-9]+|(?:[0-9]+(?:[num]?s|secs?|m|h|hrs?|mins?))+")
"""What letters and digits may be that is read in its own way, durations among them."""
_FRACTION_END: Final = digits[1:]


def _with_one_more(alphabets: Sequence[str]) -> Sequence[str]:
    return [*alphabets, alphabets[-1]]


class Placeholders:
    """Draws placeholders under one key, and remembers which stands for what."""

    def __init__(self, key: bytes, kept: Collection[str] = KNOWN_WORDS) -> None:
        """Draw under this key, of at most 64 bytes, and never what is `kept` (lower case)."""
        self._key = key
        self._kept = frozenset(kept)
        self._drawn: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()

    def word(self, word: str, context: str = "") -> str:
        """Return what stands for letters, given in lower case; `context` tells it from others."""
        if _HEX.issuperset(word):
            return self._draw("word", word, [_HEX_LETTERS] * len(word), self._is_kept, context)
        alphabets = [ascii_lowercase] * len(word)
        return self._draw("word", word, alphabets, self._is_no_word, context)

    def mixed(self, token: str) -> str:
        """Return what stands for letters and digits together, given in lower case."""
        is_hex = _HEX.issuperset(token)
        letters = _HEX_LETTERS if is_hex else ascii_lowercase
        alphabets = [digits if character in digits else letters for character in token]
        refused = self._is_kept if is_hex else self._is_odd
        return self._draw("mixed", token, alphabets, refused)

    def whole_number(self, token: str) -> str:
        """Return what stands for digits; where they are a moment since 1970, it is one as well."""
        alphabets = [digits] * len(token)
        if token[0] == "0":
            alphabets[0] = "0"
        elif len(token) in _EPOCH_LENGTHS:
            alphabets[:2] = _epoch_beginning(token)
        elif len(token) == _STATUS_LENGTH:
            alphabets[0] = "12345" if token[0] in "12345" else "6789"
        else:
            alphabets[0] = digits[1:]
        return self._draw("number", token, alphabets, _is_status)

    def fraction(self, token: str) -> str:
        """Return what stands for the digits behind a point; zeros at the end stay."""
        told = token.rstrip("0")
        if not told:
            return token
        alphabets = [digits] * (len(told) - 1) + [_FRACTION_END]
        return self._draw("fraction", told, alphabets, _never) + "0" * (len(token) - len(told))

    def stamp(
        self,
        shown: str,
        alphabets: Sequence[str],
        longer: Callable[[str, Sequence[str]], Sequence[str]],
    ) -> str:
        """Return what stands for a moment, drawn from what may stand at each of its places.

        Where there are no more of these, it is drawn from what is `longer`.
        """
        return self._draw("stamp", shown, alphabets, _never, longer=partial(longer, shown))

    def octets(self, data: bytes) -> bytes:
        """Return as many other bytes."""
        found = b""
        for number in range(-(-len(data) // 64)):
            found += self._hash(b"%d:%b" % (number, data))
        return found[: len(data)]

    def _draw(
        self,
        kind: str,
        source: str,
        alphabets: Sequence[str],
        refused: Callable[[str], bool],
        context: str = "",
        *,
        longer: Callable[[Sequence[str]], Sequence[str]] = _with_one_more,
    ) -> str:
        known = self._drawn.get((kind, f"{context}{source}"))
        if known is not None:
            return known
        for drawn in self._candidates(f"{kind}:{context}:{source}", alphabets):
            if (kind, drawn) not in self._taken and not refused(drawn):
                self._taken.add((kind, drawn))
                self._drawn[kind, f"{context}{source}"] = drawn
                return drawn
        # More different ones than there are of this length: a longer one, as anything is better
        # than two that are the same.
        return self._draw(kind, source, longer(alphabets), refused, context)

    def _candidates(self, seed: str, alphabets: Sequence[str]) -> Iterator[str]:
        for number in range(_TRIES):
            yield "".join(
                alphabet[place % len(alphabet)]
                for alphabet, place in zip(alphabets, self._places(seed, number), strict=False)
            )
        if len(alphabets) <= _STATUS_LENGTH:
            yield from map("".join, product(*alphabets))

    def _places(self, seed: str, number: int) -> Iterator[int]:
        """Yield numbers without end, the same for the same seed under the same key."""
        first = octets = self._hash(f"{number}:{seed}".encode(errors="surrogatepass"))
        for block in count(1):
            yield from (octets[n] << 8 | octets[n + 1] for n in range(0, len(octets), 2))
            octets = self._hash(b"%d:%b" % (block, first))

    def _is_kept(self, drawn: str) -> bool:
        return drawn in self._kept

    def _is_no_word(self, drawn: str) -> bool:
        return drawn in self._kept or _HEX.issuperset(drawn)

    def _is_odd(self, drawn: str) -> bool:
        """Say whether letters and digits would be read as a duration, an address or a number."""
        return drawn in self._kept or _HEX.issuperset(drawn) or _ODD.fullmatch(drawn) is not None

    def _hash(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key).digest()


def _epoch_beginning(token: str) -> tuple[str, str]:
    if token.startswith(_RECENT):
        return token[0], token[1]
    if token[0] == "1":
        return "1", "01234569"
    return ("2345678" if len(token) == _LONGEST_INT else "23456789"), digits


def _never(_: str) -> bool:
    return False


def _is_status(drawn: str) -> bool:
    return drawn in STATUSES


STATUSES: Final = frozenset(
    map(str, (*range(200, 209), *range(300, 309), *range(400, 432), 451, *range(500, 512)))
)
"""HTTP's: numbers that everybody knows, and that tell one error from another."""
