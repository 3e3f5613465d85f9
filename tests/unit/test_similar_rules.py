"""The rules that are off by default: nearly equal calls, nearly equal results, and sweeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS, Facts, Limits, Settings, Thresholds
from otel_loopguard.detectors._likeness import likeness, pieces_of

OFF_BY_DEFAULT = ("similar_calls", "similar_results", "sweep")
LONG = "the figures of the annual report of the company in the year "


def called(arguments: object, name: str = "a", call: int = 1) -> Facts:
    return Facts("tool", name, "", 0, call, asked=json.dumps(arguments).encode())


def answered(result: object, call: int | None = 1) -> Facts:
    text = None if result is None else json.dumps(result).encode()
    return Facts("tool", "a", "", 0, call, outcome=1, pending=False, answered=text)


def counts(rule: str, told: Sequence[Facts]) -> list[float]:
    kind = next(kind for kind in DETECTORS if kind.rule == rule)
    detector = kind.of(Settings(Limits(), {rule: Thresholds(warn=1)}))
    assert detector is not None
    found: list[float] = []
    for facts in told:
        finding = detector.check(facts)
        found.append(0 if finding is None else finding.count)
        detector.commit(facts)
    return found


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([called(LONG + "2023"), called(LONG + "2024"), called(LONG + "2025")], [1, 2, 3]),
        ([called(LONG + "x"), called("y" + LONG), called(LONG)], [1, 2, 3]),
        ([called(LONG), called("something else"), called(LONG)], [1, 1, 1]),
        ([called(LONG), called(LONG, "b"), called(LONG)], [1, 1, 1]),
        ([called(LONG), Facts("tool", "a", "", 0, None), called(LONG)], [1, 0, 1]),
        ([called({}), called({})], [1, 2]),
    ],
)
def test_similar_calls(told: list[Facts], expected: list[float]):
    assert counts("similar_calls", told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([answered(LONG + "2023"), answered(LONG + "99"), answered(LONG)], [1, 2, 3]),
        ([answered(LONG), answered("something else"), answered(LONG)], [1, 1, 1]),
        ([answered(LONG), answered(LONG, call=2), answered(LONG)], [1, 1, 1]),
        ([answered(LONG), answered(None), answered(LONG)], [1, 0, 1]),
        ([answered(LONG), answered(LONG, call=None), answered(LONG)], [1, 0, 1]),
    ],
)
def test_similar_results(told: list[Facts], expected: list[float]):
    assert counts("similar_results", told) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([{"page": 1}, {"page": 2}, {"page": 3}], [1, 2, 3]),
        ([{"offset": 0}, {"offset": 50}, {"offset": 100}], [1, 2, 3]),
        ([{"n": -1}, {"n": 0}, {"n": 1}], [1, 2, 3]),
        (["page-9", "page-10", "page-11"], [1, 2, 3]),
        ([{"page": 1}, {"page": 2}, {"page": 4}, {"page": 6}], [1, 2, 2, 3]),
        ([{"page": 3}, {"page": 2}, {"page": 1}], [1, 1, 1]),
        ([{"page": 1}, {"page": 1}], [1, 1]),
        ([{"from": 1, "to": 2}, {"from": 2, "to": 3}], [1, 1]),
        ([{"from": 1, "to": 2}, {"from": 1, "to": 3}, {"from": 2, "to": 3}], [1, 2, 2]),
        ([{"page": 1, "q": "x"}, {"page": 2, "q": "y"}], [1, 1]),
    ],
)
def test_sweep(calls: list[object], expected: list[float]):
    assert counts("sweep", [called(call) for call in calls]) == expected


def test_a_sweep_is_of_one_tool_with_known_arguments():
    pages = [called({"page": page}) for page in range(4)]
    other = called({"page": 2}, "b")

    assert counts("sweep", [*pages[:2], other, *pages[2:]]) == [1, 2, 1, 1, 2]
    assert counts("sweep", [*pages[:2], Facts("tool", "a", "", 0, None), pages[2]]) == [1, 2, 0, 1]


@given(st.lists(st.integers(0, 3), max_size=20))
def test_a_sweep_is_what_its_definition_says(pages: list[int]):
    strides = [later - page for page, later in pairwise(pages)]
    expected: list[float] = []
    for last in range(len(pages)):
        before = strides[:last][::-1]
        same = next((n for n, stride in enumerate(before) if stride != before[0]), len(before))
        expected.append(1 if not before or before[0] <= 0 else same + 1)

    assert counts("sweep", [called({"page": page}) for page in pages]) == expected


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_likeness_is_a_share_and_has_no_direction(one: bytes, other: bytes):
    share = likeness(pieces_of(one), pieces_of(other))

    assert 0 <= share <= 1
    assert share == likeness(pieces_of(other), pieces_of(one))
    assert likeness(pieces_of(one), pieces_of(one)) == 1


def test_they_are_off_by_default():
    assert DEFAULT_RULES.keys().isdisjoint(OFF_BY_DEFAULT)
    assert set(OFF_BY_DEFAULT) <= {kind.rule for kind in DETECTORS}
