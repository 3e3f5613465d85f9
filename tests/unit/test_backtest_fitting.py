"""Fitting the weights of `stagnation`, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest

from otel_loopguard.backtest.fitting import (
    ClassedRun,
    curve,
    fitted_weights,
    held_out_scores,
    highest_score,
)

START = {"novel": -0.4, "again": 2.8}


def classed(*agents: str, loop: bool = False) -> ClassedRun:
    """Return a run; `n` is a novel step, `a` one again."""
    names = {"n": "novel", "a": "again", "x": "unheard of", "o": "odd"}
    return ClassedRun(
        is_loop=loop, agents=tuple(tuple(names[letter] for letter in agent) for agent in agents)
    )


@pytest.mark.parametrize(
    ("agents", "score"),
    [((), 0), (("nnn",), 0), (("aa",), 5.6), (("aaxnn",), 5.6), (("nnaan", "aaa"), 8.4)],
)
def test_the_score_is_the_highest_of_an_agent_and_never_below_zero(
    agents: tuple[str, ...], score: float
):
    assert highest_score(classed(*agents), START) == pytest.approx(score)


def test_with_much_data_a_weight_is_the_log_ratio_of_the_shares():
    runs = [classed("n" * 9_000 + "a" * 1_000), classed("n" * 2_000 + "a" * 8_000, loop=True)]
    weights = fitted_weights(runs, START, strength=1e-6)
    assert weights["novel"] == round(math.log(0.2 / 0.9), 2)
    assert weights["again"] == round(math.log(0.8 / 0.1), 2)


def test_without_loops_the_weights_keep_their_distances():
    weights = fitted_weights([classed("n" * 900 + "a" * 100)], START)
    assert weights["again"] - weights["novel"] == pytest.approx(3.2, abs=0.02)


def test_a_weight_moves_by_what_there_is_against_what_was_expected():
    runs = [classed("n" * 90 + "a" * 10), classed("n" + "a" * 19, loop=True)]
    weights = fitted_weights(runs, START, strength=10)
    # Half a step more of each class in 101: 90.5 / 101 and 10.5 / 101.
    expected = {"novel": 90.5 / 101 * math.exp(-0.4), "again": 10.5 / 101 * math.exp(2.8)}
    every = sum(expected.values())
    novel, again = (expected[name] / every for name in START)
    assert round(again, 3) == 0.740, "of 20 steps in loops, 14.8 were expected to be `again`"
    # 7.4 more steps of `again`, and for `novel` not 2.6 but 4.
    assert weights == {
        "again": round(2.8 - math.log(every) + math.log((19 + 10 * again) / (30 * again)), 2),
        "novel": round(-0.4 - math.log(every) + math.log((1 + 4) / (20 * novel + 4)), 2),
    }


def test_few_loops_change_little_and_many_change_much():
    healthy = classed("n" * 900 + "a" * 100)
    few, many = (
        fitted_weights([healthy, *[classed("n" * 10, loop=True)] * count], START)["again"]
        for count in (1, 500)
    )
    none = fitted_weights([healthy], START)["again"]
    assert 0 < none - few < 0.1
    assert none - many > 1


def test_what_hardly_occurs_moves_its_weight_a_little_and_what_does_not_occur_not_at_all():
    start = {**START, "odd": 1.0, "never": 0.7}
    runs = [classed("n" * 99_000 + "a" * 1_000), classed("n" * 50 + "a" * 100 + "o", loop=True)]
    weights = fitted_weights(runs, start)
    assert weights["never"] == 0.7
    quiet = fitted_weights([runs[0], classed("n" * 50 + "a" * 100, loop=True)], start)
    assert quiet["odd"] == 1.0
    assert 1.0 < weights["odd"] < 2.0


def test_no_weight_is_endless_and_every_class_has_one():
    weights = fitted_weights([classed("n" * 10**5), classed("a" * 10**5, loop=True)], START)
    assert weights == {"novel": -5, "again": 5}


RUNS = [
    classed("nnn"),
    classed("an"),
    classed("aan", "n"),
    classed("aaa", loop=True),
    classed("aa", loop=True),
    classed("na", loop=True),
]


def test_the_curve_counts_who_reaches_a_threshold():
    scores = [highest_score(run, {"novel": -1.0, "again": 2.0}) for run in RUNS]
    assert scores == [0, 2, 4, 6, 4, 2]
    points = curve(RUNS, scores, [2, 2.5, 4, 6, 7])
    assert [
        (point.threshold, point.false_aborts.count, point.caught.count) for point in points
    ] == [(2, 2, 3), (2.5, 1, 2), (4, 1, 2), (6, 0, 1), (7, 0, 0)]
    assert {(point.false_aborts.of, point.caught.of) for point in points} == {(3, 3)}
    assert curve([], [], [8])[0].caught.share is None


def test_nobody_is_judged_by_weights_that_were_fitted_to_them():
    healthy = [classed("n" * 20) for _ in range(6)]
    loops = [classed("n" + "a" * (length + 3), loop=True) for length in range(6)]
    # The first and the sixth of a kind are held out together.
    without = [*healthy[1:5], *loops[1:5]]
    expected = fitted_weights(without, START)["again"]
    scores = held_out_scores([*healthy, *loops], START)
    assert scores[6] == pytest.approx(3 * expected)
    assert scores[11] == pytest.approx(8 * expected)
    assert scores[7] == pytest.approx(
        4 * fitted_weights([healthy[0], *healthy[2:], loops[0], *loops[2:]], START)["again"]
    )
    assert expected != fitted_weights([*healthy, *loops], START)["again"]
