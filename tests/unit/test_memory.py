"""What counts as seen before, and as the same call: `memory`, and the rules by it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import pytest

from otel_loopguard.engine.memory import KEPT, RECENT, SEEN, Memory
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step
from otel_loopguard.values.volatile import Masking

Make: TypeAlias = Callable[[int], object]
"""Makes the arguments, or the result, of the call with this number."""

EXACT = Policy.from_mapping({"masking": {"enabled": False}})


def name_of(number: int) -> str:
    return str(uuid.UUID(int=0x1234_5678_9ABC_4DEF_8123_0000_0000_0000 + 977 * number))


def time_of(number: int) -> str:
    return f"2026-03-01T12:{number // 60:02}:{number % 60:02}.123456Z"


class Told:
    """A run of calls of one tool without any rule."""

    def __init__(self, masking: Mapping[str, object] | None = None) -> None:
        self._guard = LoopGuard(Policy.from_mapping({"masking": masking}, base=Policy.none()))

    def call(self, arguments: object, result: object) -> bool:
        """Say whether a call and its result count as seen before."""
        before = self._guard.stats().repeated_calls
        self._guard.record(Step(kind="tool", name="a", arguments=arguments, result=result))
        return self._guard.stats().repeated_calls > before


same_calls: list[tuple[str, Any, Any, Any, Any]] = [
    ("equal", {"q": 1}, "one row", {"q": 1}, "one row"),
    ("a new id in the result", {"q": 1}, f"job {name_of(1)}", {"q": 1}, f"job {name_of(2)}"),
    ("a new time in the result", {"q": 1}, f"at {time_of(1)}", {"q": 1}, f"at {time_of(2)}"),
    ("a duration by its key", {"q": 1}, {"took": 3, "n": 1}, {"q": 1}, {"took": 9, "n": 1}),
    ("a time in the arguments", {"at": time_of(1)}, "full", {"at": time_of(2)}, "full"),
    (
        "an id inside a text",
        {"q": f"reports (request {name_of(1)})"},
        "no reports",
        {"q": f"reports (request {name_of(2)})"},
        "no reports",
    ),
]
other_calls: list[tuple[str, Any, Any, Any, Any]] = [
    ("another result", {"q": 1}, "one row", {"q": 1}, "two rows"),
    ("progress", {"q": 1}, {"progress": 3}, {"q": 1}, {"progress": 4}),
    ("other arguments", {"q": 1}, "one row", {"q": 2}, "one row"),
    ("an id that is the argument", {"id": name_of(1)}, "ok", {"id": name_of(2)}, "ok"),
    ("an id, and another answer", {"id": name_of(1)}, "Ann", {"id": name_of(2)}, "Bob"),
    ("times, and other results", {"at": time_of(1)}, "full", {"at": time_of(2)}, "free"),
    (
        "both vary by nature",
        {"at": time_of(1)},
        f"job {name_of(1)}",
        {"at": time_of(2)},
        f"job {name_of(2)}",
    ),
]


def rows(cases: list[tuple[str, Any, Any, Any, Any]]) -> list[Any]:
    return [pytest.param(*case[1:], id=case[0]) for case in cases]


@pytest.mark.parametrize(("arguments", "result", "its_arguments", "its_result"), rows(same_calls))
def test_calls_that_count_as_the_same(
    arguments: Any, result: Any, its_arguments: Any, its_result: Any
):
    told = Told()

    assert not told.call(arguments, result)
    assert told.call(its_arguments, its_result)


@pytest.mark.parametrize(("arguments", "result", "its_arguments", "its_result"), rows(other_calls))
def test_calls_that_do_not(arguments: Any, result: Any, its_arguments: Any, its_result: Any):
    told = Told()

    assert not told.call(arguments, result)
    assert not told.call(its_arguments, its_result)
    assert told.call(its_arguments, its_result)


@pytest.mark.parametrize(
    ("arguments", "result", "its_arguments", "its_result"), rows(same_calls[1:])
)
def test_nothing_is_masked_where_masking_is_off(
    arguments: Any, result: Any, its_arguments: Any, its_result: Any
):
    told = Told({"enabled": False})

    assert not told.call(arguments, result)
    assert not told.call(its_arguments, its_result)


@pytest.mark.parametrize("length", [KEPT - 60, KEPT, KEPT + 1, 70 * KEPT])
def test_long_results_are_compared_like_short_ones(length: int):
    told = Told()
    pages = [f"{time_of(number)} {'x' * length}" for number in range(3)]

    assert [told.call({}, page) for page in pages] == [False, True, True]
    assert not told.call({}, f"{time_of(9)} {'x' * (length - 1)}y")


def test_long_arguments_compare_as_they_are():
    told = Told()

    assert not told.call({"at": time_of(1), "text": "x" * KEPT}, "full")
    assert not told.call({"at": time_of(2), "text": "x" * KEPT}, "full")


@pytest.mark.parametrize(("between", "is_same"), [(RECENT - 1, True), (RECENT, False)])
def test_what_varies_is_looked_for_among_the_last_calls(between: int, is_same: bool):  # noqa: FBT001
    told = Told()
    told.call({"q": "x"}, f"job {name_of(1)}")
    for number in range(between):
        told.call({"page": number}, f"page {number}")

    assert told.call({"q": "x"}, f"job {name_of(2)}") is is_same


@pytest.mark.parametrize(("between", "is_same"), [(RECENT - 1, True), (RECENT, False)])
def test_and_among_the_last_answers(between: int, is_same: bool):  # noqa: FBT001
    told = Told()
    told.call({"at": time_of(1)}, "full")
    for number in range(between):
        told.call({"page": number}, f"page {number}")

    assert told.call({"at": time_of(2)}, "full") is is_same


def test_what_came_back_in_other_words_stays_among_the_last_calls():
    told = Told()
    found = [told.call({"q": "x"}, f"job {name_of(number)}") for number in range(20)]

    assert found == [False] + [True] * 19


def test_it_says_how_much_was_new_since():
    memory = Memory(Masking())
    for key, news in ((1, 1), (2, 2), (3, 3)):
        assert memory.since(key, news) is None
        memory.keep(key, news)

    assert [memory.since(key, 3) for key in (1, 2, 3)] == [2, 1, 0]
    memory.keep(1, 3)
    assert memory.since(1, 5) == 2
    memory.forget()
    assert memory.since(1, 5) is None
    assert not memory.has(1)


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_oldest_outcome_is_forgotten_first(rounds: int):
    memory = Memory(Masking())
    for key in range(rounds * SEEN + 1):
        memory.keep(key, 0)

    assert not memory.has((rounds - 1) * SEEN)
    assert all(memory.has((rounds - 1) * SEEN + 1 + place) for place in range(SEEN))


# What the rules make of it.


def said(
    name: str,
    arguments: Make,
    result: Make,
    policy: Policy | None = None,
    times: int = 20,
) -> list[tuple[str, str]]:
    guard = LoopGuard(policy)
    found = [
        guard.record(Step(kind="tool", name=name, arguments=arguments(n), result=result(n)))
        for n in range(times)
    ]
    return [(v.rule, v.action) for decision in found for v in decision.violations]


WORK: dict[str, tuple[str, Make, Make]] = {
    "delete": ("delete", lambda n: {"id": name_of(n)}, lambda _: "ok"),
    "delete, data": ("delete", lambda n: {"id": name_of(n)}, lambda _: {"deleted": True}),
    "users": ("get_user", lambda n: {"id": n + 1}, lambda n: f"User {n + 1}"),
    "equal users": ("get_user", lambda n: {"id": n + 1}, lambda _: "active"),
    "progress": ("status", lambda _: {"job": 1}, lambda n: {"progress": n}),
    "writes": ("write", lambda n: {"path": f"f{n}", "text": "x"}, lambda _: "ok"),
}


@pytest.mark.parametrize(("name", "arguments", "result"), WORK.values(), ids=WORK)
def test_work_passes_without_a_word(name: str, arguments: Make, result: Make):
    assert said(name, arguments, result, times=12 if name == "get_user" else 20) == []


LOOPS: dict[str, tuple[Make, Make]] = {
    "an id in the text of a search": (
        lambda n: {"q": f"quarterly report, request {name_of(n)}"},
        lambda _: "3 reports: a, b, c",
    ),
    "a time beside it": (
        lambda n: {"q": "quarterly report", "at": time_of(n)},
        lambda _: "3 reports: a, b, c",
    ),
    "an id and a duration in the result": (
        lambda _: {"q": "quarterly report"},
        lambda n: {"request_id": name_of(n), "took": n, "rows": []},
    ),
}


@pytest.mark.parametrize(("arguments", "result"), LOOPS.values(), ids=LOOPS)
def test_a_loop_shows_in_spite_of_what_varies(arguments: Make, result: Make):
    found = said("search", arguments, result)

    assert ("repeated_result", "warn") in found
    assert ("repeated_result", "abort") in found


@pytest.mark.parametrize(("arguments", "result"), LOOPS.values(), ids=LOOPS)
def test_not_if_masking_is_off(arguments: Make, result: Make):
    assert "repeated_result" not in {rule for rule, _ in said("search", arguments, result, EXACT)}


def cycle(stamp: Make) -> Iterable[Step]:
    for number in range(12):
        yield Step(
            kind="tool",
            name=("read", "list")[number % 2],
            arguments={"path": "a", "at": stamp(number)},
            result=("text of a", "a, b, c")[number % 2],
        )


@pytest.mark.parametrize("policy", [None, EXACT])
def test_a_cycle_shows_although_its_calls_carry_the_time(policy: Policy | None):
    guard = LoopGuard(policy)
    found = {v.rule for step in cycle(time_of) for v in guard.record(step).violations}

    assert ("cyclic_calls" in found) is (policy is None)


MASKED: dict[str, Make] = {
    "a key": lambda n: {"ticket": n, "rows": 1},
    "a pattern": lambda n: f"one row (T-{n})",
}


@pytest.mark.parametrize("result", MASKED.values(), ids=MASKED)
def test_further_keys_and_patterns_can_be_masked(result: Make):
    masking = {"keys": ["ticket"], "patterns": ["T-[0-9]+"]}
    policy = Policy.from_mapping({"masking": masking})

    assert ("repeated_result", "abort") in said("search", lambda _: {}, result, policy)
    assert said("search", lambda _: {}, result) == []
