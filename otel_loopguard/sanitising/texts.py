"""A text -> the same text with placeholders: what stands between its words stays where it is.

JSON keeps its shape, also where it stands in a text; its keys are words like all others. Kept are
known words, names that the caller gives, HTTP statuses, counts of tokens and the form of moments
and durations. A text of more words than a request has is conversation: its words are drawn for it
alone, so that nobody can learn from many texts what a word stands for.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Final
from unicodedata import normalize

from otel_loopguard.sanitising.known_words import KNOWN_WORDS
from otel_loopguard.sanitising.moments import alphabets_of, longer
from otel_loopguard.sanitising.placeholders import STATUSES, Placeholders
from otel_loopguard.sanitising.tokens import asked_words, is_usage, subwords, tokens, words_in
from otel_loopguard.values._volatile_parts import moments_in
from otel_loopguard.values.failures import error_signature, last_line
from otel_loopguard.values.volatile import Masking

_MASKING: Final = Masking()
_WORDS_OF_REQUESTS: Final = 60
"""Words of arguments that rules compare one by one; in longer texts they only compare all of it."""
_FAILURE: Final = re.compile(r"error|exception|fail|traceback|panic|abort", re.IGNORECASE)
_LAYERS: Final = 6
"""JSON text in JSON text is read so often."""
_KEPT: Final = 50_000
"""Texts that are remembered: every span of a run repeats the conversation."""

_DIGITS: Final = re.compile(r"[0-9]+")
_MOMENT_ENDING: Final = re.compile(
    r".+?(?=(?:time|date|stamp|epoch|created|updated|modified|expires|expiry|now|since|until)$)"
)
"""A word that ends so names a moment, if it is a key."""
_JSON_PARTS: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?'
    r"|(?P<bracket>[\[\]{}])"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)",
    re.DOTALL,
)


class Texts:
    """Puts placeholders into texts; what it has once replaced, it replaces alike."""

    def __init__(
        self, key: bytes, *, names: Collection[str] = (), words: Collection[str] = ()
    ) -> None:
        """Keep `names` wherever they stand whole, and `words` (in any case) like the known ones.

        A word is what `asked_words` finds in a text.

        Placeholders are drawn under the key, of at most 64 bytes.
        """
        self._words = KNOWN_WORDS.union(*map(asked_words, words))
        self._placeholders = Placeholders(key, self._words.union(*map(words_in, names)))
        longest_first = sorted(names, key=lambda name: (-len(name), name))
        self._names = (
            re.compile(
                rf"(?<![0-9A-Za-z_])(?:{'|'.join(map(re.escape, longest_first))})(?![0-9A-Za-z_])"
            )
            if longest_first
            else None
        )
        self._known: dict[str, str] = {}

    def replaced(self, text: str, layers: int = _LAYERS) -> str:
        """Return a text with placeholders."""
        if text not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[text] = self._replaced(normalize("NFC", text), layers)
        return self._known[text]

    def octets(self, data: bytes) -> bytes:
        """Return as many other bytes."""
        return self._placeholders.octets(data)

    def number(self, text: str) -> str:
        """Return what stands for a number as it is written, without a sign."""
        return _DIGITS.sub(self._digits, text) if "e" not in text.lower() else self._power(text)

    def _replaced(self, text: str, layers: int) -> str:
        if layers and text.lstrip()[:1] in ("{", "[", '"') and _is_json(text):
            return self._json(text, layers - 1)
        return "".join(
            self._outside_names(part, partial(self._plain, context=context))
            for part, context in _with_contexts(text)
        )

    def _json(self, text: str, layers: int) -> str:
        key = ""

        def part(match: re.Match[str]) -> str:
            nonlocal key
            if match["text"] is None:
                named, key = key, ""
                if match["bracket"] is not None or is_usage(named):
                    return match[0]
                return _signed(match["number"], self.number)
            said = json.loads(match["text"])
            new = self.replaced(said, layers)
            key = said if match["colon"] is not None else ""
            if new == said:
                return match[0]
            written = json.dumps(new, ensure_ascii=match["text"].isascii())
            return written + (match["colon"] or "")

        return _JSON_PARTS.sub(part, text)

    def _outside_names(self, text: str, replace: Callable[[str], str]) -> str:
        if self._names is None:
            return replace(text)
        found: list[str] = []
        done = 0
        for name in self._names.finditer(text):
            found += replace(text[done : name.start()]), name[0]
            done = name.end()
        return "".join((*found, replace(text[done:])))

    def _plain(self, text: str, context: str) -> str:
        found: list[str] = []
        done = 0
        for start, end in moments_in(text):
            found += self._tokens(text[done:start], context), self._moment(text[start:end])
            done = end
        return "".join((*found, self._tokens(text[done:], context)))

    def _tokens(self, text: str, context: str) -> str:
        def token(match: re.Match[str]) -> str:
            if match["run"] is not None:
                return self._run(match, context)
            if match["counted"] is not None or match["decade"] is not None:
                return match[0]
            if match["power"] is not None:
                return self._power(match[0])
            if match["lasting"] is not None:
                return _DIGITS.sub(self._digits, match[0])
            if match["address"] is not None:
                return f"0x{self._cased(match[0][2:])}"
            letters = match[0][2:]
            return match[0][:2] + (self._cased(letters) if letters else "")

        return tokens().sub(token, text)

    def _run(self, match: re.Match[str], context: str) -> str:
        run = match[0]
        if run.lower() in self._words or run.casefold() in self._words:
            return run
        if not run.isascii():
            folded = self._placeholders.word(run.casefold(), context)
            return folded.upper() if run.isupper() else folded
        if run.isdigit():
            before = match.string[max(match.start() - 2, 0) : match.start()]
            is_fraction = before[-1:] == "." and before[:1].isdigit()
            return self._fraction(run) if is_fraction else self._whole(run)
        if not run.isalpha():
            return self._cased(run)
        return "".join(self._word(part[0], context) for part in subwords(run))

    def _word(self, part: str, context: str) -> str:
        lower = part.lower()
        if lower in self._words:
            return part
        stem = _MOMENT_ENDING.match(lower)
        if stem is not None:
            drawn = self._placeholders.word(stem[0], context) + lower[stem.end() :]
        else:
            drawn = self._placeholders.word(lower, context)
        return _in_case_of(part, drawn)

    def _cased(self, run: str) -> str:
        lower = run.lower()
        if lower.isdigit():
            return self._placeholders.mixed(lower)
        return _in_case_of(run, self._placeholders.mixed(lower))

    def _digits(self, match: re.Match[str]) -> str:
        is_fraction = match.string[max(match.start() - 1, 0) : match.start()] == "."
        return self._fraction(match[0]) if is_fraction else self._whole(match[0])

    def _whole(self, number: str) -> str:
        if number == "0" or number in STATUSES:
            return number
        return self._placeholders.whole_number(number)

    def _fraction(self, number: str) -> str:
        return self._placeholders.fraction(number)

    def _power(self, text: str) -> str:
        mantissa, mark, exponent = re.split("([eE])", text)
        return f"{_DIGITS.sub(self._digits, mantissa)}{mark}{exponent}"

    def _moment(self, shown: str) -> str:
        return self._placeholders.stamp(shown, alphabets_of(shown), longer)


def _signed(number: str, replace: Callable[[str], str]) -> str:
    return f"-{replace(number[1:])}" if number.startswith("-") else replace(number)


def _in_case_of(shown: str, drawn: str) -> str:
    """Return what was drawn with the capitals of what is replaced."""
    longer = drawn[len(shown) :]
    return (
        "".join(
            new.upper() if old.isupper() else new for old, new in zip(shown, drawn, strict=False)
        )
        + longer
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _with_contexts(text: str) -> list[tuple[str, str]]:
    """Return a text in parts, each with what tells its words from those of other texts.

    That is "" for a short text, and for a short line that tells of a failure: failures are compared
    by their type and last line. Where these are long, words are drawn for what is compared of them.
    """
    if _is_short(text):
        return [(text, "")]
    masked = _MASKING.masked_result(text.encode(errors="surrogatepass"))
    if not _FAILURE.search(text):
        return [(text, _hash(masked))]
    told, signature = last_line(text), error_signature(text)
    begins_shortly = _is_short(text.lstrip().partition("\n")[0])
    is_told_shortly = _is_short(told) and (begins_shortly or signature == error_signature(told))
    own = _hash(masked if is_told_shortly else signature.encode(errors="surrogatepass"))

    def tells(line: str) -> bool:
        return _is_short(line) and (line.rstrip("\r\n") == told or bool(_FAILURE.search(line)))

    return [(line, "" if tells(line) else own) for line in text.splitlines(keepends=True)]


def _is_short(text: str) -> bool:
    return len(text.split(None, _WORDS_OF_REQUESTS)) <= _WORDS_OF_REQUESTS


def _hash(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()}:"
