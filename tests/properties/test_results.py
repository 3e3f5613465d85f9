"""Laws of comparing results, arguments and errors, for all values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.values.answers import found_nothing, nearly_equal
from otel_loopguard.values.failures import error_in, error_signature
from otel_loopguard.values.volatile import Masking

UUIDS = ["550e8400-e29b-41d4-a716-446655440000", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"]
VOLATILE = [
    *UUIDS,
    *("2026-11-29", "20:00:00", "20:00", "2026-11-29T20:00:00Z", "Nov 29 20:00:00", "20261129"),
    *("20261129T200000", "1770000000", "1770000000.5", "1s", "1.013s", "12 ms", "1m30s", "µs"),
    *("1 hour", "0x7f31c0", "0x", "356a192b7913b04c54574d18c28d46e6395428ab", "+01:00", " UTC"),
]
PLAIN = [
    *(" ", "\n", "\t", '"', "'", "\\", ":", ",", ".", "-", "/", "=", "<", ">", "(", "{", "}", "é"),
    *("5", "17", "a", "n", "s", "m", "pid", "eta", "left", "order C-78", "paris", "weather", "in"),
    *('{"pid": 4}', "'pid': 'a'", '"ts":"', "No results found", "Error: ", "not found", "ERROR"),
    *("Traceback (most recent call last)", "ValueError: ", "HTTP 429", "<time>", "<volatile>"),
]
KEYS = [
    "pid",
    "durationMs",
    "request_id",
    "timestamp",
    "error",
    "isError",
    "a",
    "id",
    "results",
    "q",
]

texts = st.lists(st.sampled_from(VOLATILE + PLAIN), max_size=8).map("".join) | st.text(max_size=8)
scalars = texts | st.integers(-5, 5) | st.integers(10**9, 2 * 10**9) | st.floats() | st.booleans()
values: st.SearchStrategy[Any] = st.recursive(
    scalars | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | texts, inner, max_size=4)
    ),
    max_leaves=6,
)


def text_of(value: object) -> bytes:
    text = canonical(value)
    return b"null" if text is UNKNOWN else text


canonical_texts = values.map(text_of)
any_octets = canonical_texts | st.binary(max_size=60)


@given(canonical_texts)
def test_masking_twice_is_masking_once(text: bytes) -> None:
    masking = Masking()
    result, arguments = masking.masked_result(text), masking.masked_arguments(text)

    assert masking.masked_result(result) == result
    assert masking.masked_arguments(arguments) == arguments


@given(any_octets)
def test_masking_never_raises_and_hardly_grows_a_text(text: bytes) -> None:
    masking = Masking(keys=("a",), patterns=("x*", r"\d"))

    # The longest mark, in place of a single character; `<volatile>` has ten.
    assert len(masking.masked_result(text)) <= 10 * len(text)
    assert len(masking.masked_arguments(text)) <= 10 * len(text)


@given(canonical_texts)
def test_arguments_keep_what_results_keep(text: bytes) -> None:
    if Masking().masked_result(text) == text and b"0x" not in text:
        assert b"<hash>" in Masking().masked_arguments(text) or (
            Masking().masked_arguments(text) == text
        )


@given(texts, st.sampled_from(UUIDS), st.sampled_from(UUIDS))
def test_a_uuid_that_stands_alone_makes_no_difference(text: str, one: str, other: str) -> None:
    masking = Masking()

    assert masking.masked_result(text_of(f"{text} {one} x")) == masking.masked_result(
        text_of(f"{text} {other} x")
    )


@given(st.integers(), st.integers())
def test_a_plain_number_is_never_lost(one: int, other: int) -> None:
    masking = Masking()
    equal = masking.masked_result(text_of({"n": one})) == masking.masked_result(
        text_of({"n": other})
    )

    assert equal == (one == other)


@given(any_octets, any_octets)
def test_near_equality_is_symmetric(one: bytes, other: bytes) -> None:
    assert nearly_equal(one, other) == nearly_equal(other, one)


@given(any_octets)
def test_near_equality_is_reflexive(text: bytes) -> None:
    assert nearly_equal(text, bytes(bytearray(text)))


@given(texts, texts)
def test_near_equality_does_not_see_spaces_and_case(one: str, other: str) -> None:
    line = " ".join(f"x{one} {other}y".split())
    if len(line) < 500 and line.isascii():
        assert nearly_equal(text_of({"q": f"{line} z"}), text_of({"q": f"  {line}  Z "}))


@given(any_octets)
def test_every_text_is_read_without_complaint(text: bytes) -> None:
    error = error_in(text, ("5",))

    assert found_nothing(text) in (True, False)
    assert error is None or isinstance(error, str)


@given(texts | st.text())
def test_a_signature_is_short_and_of_one_line(error: str) -> None:
    signature = error_signature(error)

    assert len(signature) <= 160
    assert signature == " ".join(signature.split())


@given(st.text("abc \n:", max_size=20), st.integers(10**4, 10**6), st.integers(10**4, 10**6))
def test_a_number_in_words_makes_no_other_error(text: str, one: int, other: int) -> None:
    assert error_signature(f"{text} item {one} x") == error_signature(f"{text} item {other} x")
