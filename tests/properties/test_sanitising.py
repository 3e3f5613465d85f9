"""What rules ask about two values is the same of what stands in their place.

The same examples are drawn each time: the law holds for what tools and models write, and not for
every row of characters, in which digits may come to stand as in a time of day.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.policy import Policy
from otel_loopguard.replay.files import read_line
from otel_loopguard.sanitising import RecordedLine, Recording
from otel_loopguard.sanitising.steps_lines import plain
from otel_loopguard.sanitising.texts import Texts
from otel_loopguard.values.answers import found_nothing, nearly_equal
from otel_loopguard.values.failures import error_in, error_signature
from otel_loopguard.values.volatile import Masking
from tests._examples import examples

MASKING = Masking()
KEY = b"a key of the tests"

PIECES = (
    *(
        "weather",
        "Weather",
        "in",
        "Paris",
        "Bonn",
        "jane.doe@example.com",
        "No results found for x",
    ),
    *("Error: ", "ValueError: bad", "not found", "exit code 7", "404", "12", "7", "0", "3.50"),
    *("2026-11-29T12:34:56Z", "12:34:56", "took 350ms", "2.5 s", "1767225600", "1599999999"),
    *("550e8400-e29b-41d4-a716-446655440000", "0x7f3a2b", "9f86d081884c7d65", "step 3 of 9"),
    *(
        "\n",
        " ",
        " ",
        ", ",
        "/home/jane/notes.txt",
        '{"took": 3}',
        "[]",
        "M\u00fcller",
        "+49 170 123",
    ),
)
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join),
    st.text(st.characters(codec="utf-8", max_codepoint=0x250), max_size=12),
)
SCALARS = st.one_of(TEXTS, st.integers(-(10**12), 10**12), st.booleans(), st.none())
NAMES = ("query", "took", "created_at", "id", "error", "count", "Jane Doe", "a@b.c", "n2", "17", "")
KEYS = st.one_of(st.sampled_from(NAMES), st.text(st.characters(codec="ascii"), max_size=4))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


VOLATILE = (
    *("2026-11-29T12:34:56Z", "2025-01-02 01:02:03.5", "29 Nov 2026 12:34", "12:34:56", "350ms"),
    *("took 2.5 s", "1h30m", "1767225600", "1767225601123", "0x7f3a2b", "0x12cd"),
    *("550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "7", "Paris"),
)
FRAMES = ("{}", "at {}", "Error: {} failed", '{{"took": "{}"}}', "({}) done", "no results in {}")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw two values, often the same or nearly the same."""
    one = draw(VALUES)
    frame = draw(st.sampled_from(FRAMES))
    match draw(st.integers(0, 4)):
        case 0:
            return one, one
        case 1 if isinstance(one, str):
            return one, one + draw(st.sampled_from(PIECES))
        case 2 if isinstance(one, dict):
            return one, {**one, "query": draw(TEXTS)}
        case 3:
            first, second = (frame.format(draw(st.sampled_from(VOLATILE))) for _ in range(2))
            return first, second
        case _:
            return one, draw(VALUES)


def facts(one: Any, other: Any) -> dict[str, object]:
    """Return what rules ask about two results, or two arguments."""
    texts = canonical(one), canonical(other)
    assert UNKNOWN not in texts
    first, second = (text for text in texts if text is not UNKNOWN)
    errors = [error_in(text) for text in (first, second)]
    signatures = [None if error is None else error_signature(error) for error in errors]
    return {
        "equal": first == second,
        "equal but for what is volatile": MASKING.masked_result(first)
        == MASKING.masked_result(second),
        "equal but for moments": MASKING.masked_arguments(first)
        == MASKING.masked_arguments(second),
        "says nothing": (found_nothing(first), found_nothing(second)),
        "nearly equal": nearly_equal(first, second),
        "is an error": [error is not None for error in errors],
        "same error": signatures[0] == signatures[1],
    }


def replaced(texts: Texts, value: Any) -> Any:
    return plain(value, texts.replaced, texts.number)


@settings(examples(400), derandomize=True, database=None)
@given(pairs())
@example(("the weather in Paris", "weather in the city Paris"))
@example(({"took": 1, "n": 5}, {"took": 2, "n": 5}))
@example(("Error: 404 for 5", "Error: 404 for 6"))
@example(("Error: 404 for 5", "Error: 500 for 5"))
@example((json.dumps({"q": "\u00fc"}), '{"q": "\\u00fc"}'))
@example(("at 2026-11-29T12:34:56Z done", "at 2025-01-02T01:02:03Z done"))
@example(("at 2026-11-29T12:34 done", "on 2026-11-29 done"))
@example(("took 350ms", "took 2 minutes"))
@example((1, 1.0))
@example((1.5, "1.50"))
def test_what_rules_ask_stays(pair: tuple[Any, Any]):
    texts = Texts(KEY)
    assert facts(*(replaced(texts, value) for value in pair)) == facts(*pair)


REQUIRED: dict[str, st.SearchStrategy[Any]] = {
    "type": st.just("tool"),
    "name": st.sampled_from(("search", "read_file")),
    "arguments": st.one_of(st.dictionaries(KEYS, TEXTS, max_size=2), TEXTS),
    "result": VALUES,
}
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "error": st.one_of(TEXTS, st.booleans()),
    "dt_s": st.floats(0, 100),
}
STEPS = st.lists(st.fixed_dictionaries(REQUIRED, optional=OPTIONAL), max_size=4)


@settings(examples(150), derandomize=True, database=None)
@given(steps=STEPS, times=st.integers(1, 4), rename=st.booleans())
def test_a_run_of_steps_replays_the_same(*, steps: list[Any], times: int, rename: bool):
    line = json.dumps({"run_id": "r", "steps": steps * times}).encode()
    recording = Recording()
    content = read_line(line, 1)
    assert content is not None
    recording.lines.append(RecordedLine(number=1, text=line, content=content))
    lines = recording.sanitised(KEY, rename=rename)
    assert recording.differences(lines, Policy()) == []
