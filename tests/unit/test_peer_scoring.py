"""How the comparison with other guards counts verdicts; needs none of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from benchmarks.peers import _scoring as scoring
from benchmarks.peers._adapter import Call, Contender, Verdict


def saying(*verdicts: Verdict | Exception) -> Contender:
    """A guard that says these things in turn, and then nothing more."""

    def start() -> Callable[[Call], Verdict]:
        left = list(verdicts)

        def judge(call: Call) -> Verdict:
            assert call.tool == "search"
            verdict = left.pop(0) if left else "go"
            if isinstance(verdict, Exception):
                raise verdict
            return verdict

        return judge

    return Contender(name="scripted", options="", start=start)


def scenario(name: str, calls: int) -> scoring.Scenario:
    call = Call(tool="search", arguments={"q": "x"}, result="[]")
    return scoring.Scenario(id=name, is_loop=name.startswith("t"), calls=(call,) * calls)


def outcome(name: str, ending: scoring.Ending, at: int = 0) -> scoring.Outcome:
    return scoring.Outcome(scenario=name, is_loop=name.startswith("t"), ending=ending, at=at)


@pytest.mark.parametrize(
    ("said", "ending", "at"),
    [
        ((), "go", 0),
        (("go", "warn", "go"), "warn", 0),
        (("warn", "go", "stop"), "stop", 3),
        (("stop", ValueError("never asked again")), "stop", 1),
        (("warn", ValueError("unreadable")), "crash", 2),
    ],
)
def test_a_run_ends_at_the_first_stop_or_crash(
    said: Sequence[Verdict | Exception], ending: str, at: int
) -> None:
    played = scoring.play(saying(*said), scenario("t01", 5))

    assert (played.ending, played.at) == (ending, at)


def test_a_guard_that_cannot_begin_has_crashed_at_once() -> None:
    def start() -> Callable[[Call], Verdict]:
        raise RuntimeError("no licence")

    broken = Contender(name="broken", options="", start=start)

    assert scoring.play(broken, scenario("n01", 3)) == outcome("n01", "crash")


@pytest.mark.parametrize(
    ("played", "wrong"),
    [
        (outcome("t01", "stop", 12), False),
        (outcome("t01", "stop", 13), True),
        (outcome("t01", "warn"), True),
        (outcome("t01", "go"), True),
        (outcome("t01", "crash", 3), True),
        (outcome("t11_spread", "stop", 42), False),
        (outcome("t11_spread", "stop", 43), True),
        (outcome("n01", "go"), False),
        (outcome("n01", "warn"), False),
        (outcome("n01", "stop", 30), True),
        (outcome("n01", "crash", 1), True),
    ],
)
def test_what_is_right(played: scoring.Outcome, wrong: bool) -> None:  # noqa: FBT001 -- a table row
    assert scoring.is_wrong(played) is wrong


def test_both_groups_weigh_the_same() -> None:
    total = scoring.score(
        [
            outcome("t1", "stop", 4),
            outcome("t2", "stop", 40),
            outcome("t3", "warn"),
            outcome("t4", "crash", 1),
            outcome("n1", "go"),
            outcome("n2", "warn"),
            outcome("n3", "stop", 9),
            outcome("n4", "crash", 2),
        ]
    )

    assert total == scoring.Score(
        loops=4, caught=1, late=1, healthy=4, stopped=1, warned=1, crashed=2, balanced=0.375
    )


def test_a_score_needs_both_groups() -> None:
    with pytest.raises(ValueError, match="got 1 and 0"):
        scoring.score([outcome("t1", "go")])


def test_the_scenarios_are_read_with_their_turns() -> None:
    scenarios = {each.id: each for each in scoring.read_scenarios()}
    batch = [call.turn for call in scenarios["t21_batch_identical"].calls]

    assert sum(each.is_loop for each in scenarios.values()) == 21
    assert len(scenarios) == 35
    assert batch[:9] == [1] * 8 + [2]
    assert {call.turn for call in scenarios["t01_identical"].calls} == {None}
    assert [call.failed for call in scenarios["n05_retry_then_ok"].calls][:3] == [True, True, False]
