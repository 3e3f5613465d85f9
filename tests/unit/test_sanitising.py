"""What is kept in a sanitised recording, and that all recordings replay the same."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_loopguard.policy import Policy
from otel_loopguard.replay.files import read_line
from otel_loopguard.sanitising import RecordedLine, Recording
from otel_loopguard.sanitising.known_words import KNOWN_WORDS
from otel_loopguard.sanitising.moments import alphabets_of, longer
from otel_loopguard.sanitising.texts import Texts
from otel_loopguard.sanitising.tokens import asked_words
from otel_loopguard.values._volatile_parts import moments_in
from otel_loopguard.values.failures import error_signature
from tests._recordings import FOLDERS, recordings

ROOT = Path(__file__).parents[2]
TESTDATA = ROOT / "tests" / "testdata"
KEY = b"a key of the tests"
PACKAGE = ROOT / "otel_loopguard"
READERS = (
    *sorted((PACKAGE / "dialects").glob("*.py")),
    *sorted((PACKAGE / "values").glob("*.py")),
    *(PACKAGE / name for name in ("semconv.py", "endings.py", "requested_calls.py", "told.py")),
)
MONTHS = frozenset(
    (*("jan", "feb", "mar", "apr", "may", "jun"), *("jul", "aug", "sep", "oct", "nov", "dec"))
)
NO_WORDS = MONTHS | frozenset(
    (
        *("abcdef", "bcs", "ded", "eded", "ghijklmnopqrstuvqrstuv", "mhnu", "nrt", "ption", "rror"),
        *("ssssss", "ute", "uting", "ution"),
    )
)
"""Pieces of patterns and of tables of letters."""


def literals(path: Path) -> Iterator[str]:
    """Yield what a module compares texts with: its literals, and the fields of its structs."""
    tree = ast.parse(path.read_text("utf-8"))
    passed = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    passed |= {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in passed:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("latin1")
        elif isinstance(node, ast.ClassDef):
            fields = (part.target for part in node.body if isinstance(part, ast.AnnAssign))
            yield from (field.id for field in fields if isinstance(field, ast.Name))


def words_of(literal: str) -> Iterator[str]:
    text = re.sub(r"\[([A-Z])([a-z])\]", r"\2", literal)
    for run in re.findall(r"[A-Za-z]+", re.sub(r"\\x[0-9a-f]{2}|\\[a-zA-Z]|\(\?P<\w+>", " ", text)):
        yield from (w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", run))


@pytest.mark.parametrize("path", READERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_word_that_a_reader_knows_is_kept(path: Path):
    asked = {word for literal in literals(path) for word in words_of(literal) if len(word) > 2}
    assert asked - NO_WORDS - KNOWN_WORDS == set()


def test_months_are_no_words_that_are_kept():
    """They are names of people as well."""
    assert MONTHS.isdisjoint(KNOWN_WORDS)
    assert {"june", "april", "august"}.isdisjoint(KNOWN_WORDS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_recording_replays_the_same(folder: str):
    """Every script of it, each as a file of its own."""
    for recorded in recordings(folder):
        recording = Recording()
        for number, line in enumerate(recorded.lines(), 1):
            content = read_line(line, number)
            if content:
                recording.lines.append(RecordedLine(number=number, text=line, content=content))
        lines = recording.sanitised(KEY)
        assert recording.differences(lines, Policy()) == [], recorded


STEPS_FILES = sorted(
    str(path.relative_to(TESTDATA))
    for pattern in ("*.jsonl", "replay/*.jsonl", "backtest/*.jsonl")
    for path in TESTDATA.glob(pattern)
)


@pytest.mark.parametrize("rename", [False, True], ids=["kept", "renamed"])
@pytest.mark.parametrize("name", STEPS_FILES)
def test_a_steps_file_replays_the_same(*, name: str, rename: bool):
    recording = Recording()
    assert all(problem.line for problem in recording.read(str(TESTDATA / name))) or not (
        recording.lines
    )
    lines = recording.sanitised(KEY, rename=rename)
    assert len(lines) == len(recording.lines)
    assert recording.differences(lines, Policy()) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param("finish_reason: tool_calls", True, id="words-of-conventions"),
        pytest.param("No results found", True, id="words-that-readers-look-for"),
        pytest.param("get_invoice", True, id="a-name"),
        pytest.param("status code 404", True, id="a-status"),
        pytest.param("ConnectionError", True, id="an-exception-of-python"),
        pytest.param("InvoiceError", False, id="an-exception-of-others"),
        pytest.param("Kowalczyk", False, id="a-name-of-a-person"),
        pytest.param("2026-11-29T12:34:56Z", False, id="a-moment"),
        pytest.param("12", False, id="a-number"),
        pytest.param("get_invoices", False, id="a-name-within-another"),
    ],
)
def test_what_is_kept_in_a_text(*, text: str, kept: bool):
    assert (Texts(KEY, names=["get_invoice"]).replaced(text) == text) is kept


def test_json_keeps_its_shape_and_the_text_around_it():
    text = '{ "kunde": [1, {"n\\u00e4me": "Jane"}],  "prompt_tokens": 12, "ok": true }'
    new = Texts(KEY).replaced(text)
    assert re.sub(r'"[^"]*"|[0-9]+', "_", new) == re.sub(r'"[^"]*"|[0-9]+', "_", text)
    assert '"prompt_tokens": 12' in new
    assert "Jane" not in new


def test_words_of_a_long_text_are_drawn_for_it_alone():
    """What a word stands for in many conversations would tell much of each."""
    texts = Texts(KEY)
    words = [f"wort{chr(97 + n % 26)}" for n in range(80)]
    one, other = texts.replaced(" ".join(words)), texts.replaced(" ".join(words[::-1]))
    assert set(one.split()).isdisjoint(other.split())
    assert texts.replaced(" ".join(words)) == one
    short = texts.replaced("worta wortb")
    assert set(short.split()) <= set(texts.replaced("wortb worta").split())


def test_more_different_words_than_there_are_stay_different():
    texts = Texts(KEY)
    drawn = [texts.replaced(chr(0x4E00 + n)) for n in range(200)]
    assert len(set(drawn)) == 200


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "\u092e\u0947\u0930\u093e \u0928\u093e\u092e \u0930\u093e\u0939\u0941\u0932",
            id="devanagari",
        ),
        pytest.param(
            "\u0e1c\u0e21\u0e0a\u0e37\u0e48\u0e2d\u0e2a\u0e21\u0e0a\u0e32\u0e22", id="thai"
        ),
        pytest.param("\u0d28\u0d4d\u200d \u0627\u064e\u0644", id="joiners-and-vowel-signs"),
    ],
)
def test_no_letter_and_no_mark_of_another_script_stays(text: str):
    new = Texts(KEY).replaced(text)
    assert (new.isascii(), len(new)) == (True, len(text))


def test_a_keycap_is_a_number_still():
    assert Texts(KEY).replaced("7\ufe0f\u20e3")[1:] == "\ufe0f\u20e3"


LONG = " ".join(f"wort{chr(97 + n % 26)}" for n in range(80))


@pytest.mark.parametrize("end", ["", " error", " it failed\nworta"], ids=repr)
def test_words_of_a_long_text_that_mentions_a_failure_are_drawn_for_it_alone(end: str):
    one, other = (Texts(KEY).replaced(f"{place} {LONG}{end}") for place in ("ulm", "bonn"))
    assert set(one.split()).isdisjoint(set(other.split()) - {"error", "it", "failed"} - LAST)


LAST = frozenset(Texts(KEY).replaced("worta").split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(f"{LONG} 5\nOrtError: ulm", "x\nOrtError: ulm", id="long-and-short"),
        pytest.param(f"OrtError: 5 {LONG}", f"OrtError: 6 {LONG}", id="numbers"),
        pytest.param(f"OrtError: ulm\n{LONG}", f"OrtError: ulm\na\n{LONG}", id="behind-its-type"),
    ],
)
def test_a_long_failure_stays_the_same_failure(one: str, other: str):
    texts = Texts(KEY)
    assert error_signature(one) == error_signature(other)
    assert error_signature(texts.replaced(one)) == error_signature(texts.replaced(other))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param('[{"input_tokens": 12}, 4915705550123]', "12", id="behind-a-count"),
        pytest.param('{"input_tokens": [4915705550123]}', None, id="in-a-list"),
        pytest.param('{"device_tokens": 4915705550123}', None, id="of-a-device"),
        pytest.param("login_tokens: 483920", None, id="in-prose"),
        pytest.param("accessTokens=918273", None, id="in-camel-case"),
        pytest.param("cache_read_input_tokens=918273", "918273", id="read-from-a-cache"),
        pytest.param("candidatesTokenCount: 918273", "918273", id="of-gemini"),
    ],
)
def test_counts_of_tokens_are_kept_and_no_other_numbers(text: str, kept: str | None):
    new = Texts(KEY).replaced(text)
    numbers = re.findall("[0-9]+", text)
    assert [number for number in numbers if number in new] == ([kept] if kept else [])


@pytest.mark.parametrize(
    ("word", "text"),
    [
        pytest.param("buyer_no", "buyer_no", id="with-a-dash-below"),
        pytest.param("buyerNo", '{"buyerNo": "no"}', id="in-camel-case"),
        pytest.param("k8s", "K8s", id="with-a-digit"),
        pytest.param("stra\u00dfe", "Stra\u00dfe", id="with-other-letters"),
        pytest.param("\u0928\u093e\u092e", "\u0928\u093e\u092e", id="with-marks"),
    ],
)
def test_a_word_is_kept_as_it_is_written(*, word: str, text: str):
    assert Texts(KEY, words=[word]).replaced(text) == text
    assert Texts(KEY).replaced(text) != text


@pytest.mark.parametrize("word", ["", "4711", "-", "5m", "0x12"])
def test_what_is_no_word_cannot_be_kept(word: str):
    assert asked_words(word) == frozenset()


def test_all_times_of_day_stay_times_of_day():
    texts = Texts(KEY)
    for form in ("{:02d}:{:02d}:{:02d}", "{:02d}:{:02d}:{:02d}.5 Z"):
        shown = [form.format(n // 3600, n // 60 % 60, n % 60) for n in range(0, 86_400, 4)]
        new = texts.replaced("\n".join(shown)).split("\n")
        assert len(set(new)) == len(shown)
        assert [moments_in(time) for time in new] == [[(0, len(time))] for time in new]


def test_a_moment_is_told_more_exactly_where_there_are_too_many():
    assert "".join(max(each) for each in longer("7:30", alphabets_of("7:30"))) == "9:59:59.999999"
    assert "".join(max(each) for each in longer("7:30:00Z", list("7:30:00Z"))) == "7:30:00.999999Z"
    assert len(longer("7:30:00,5", list("7:30:00,5"))) == len("7:30:00,5") + 8


def test_a_64_bit_number_stays_one():
    assert all(int(Texts(b"%d" % n).number("9100000000000000000")) < 2**63 for n in range(40))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("f0" * 200_000, id="one-word"),
        pytest.param("2026-11-29 12:34:56 \u00fc und\n" * 40_000, id="moments"),
        pytest.param("12:34:56 \u00fc\n" * 60_000, id="times-of-day"),
    ],
)
def test_the_time_for_a_text_grows_with_its_length(text: str):
    started = time.process_time()
    Texts(KEY).replaced(text)
    assert time.process_time() - started < 10.0, "quadratic time would be a minute and more"
