"""Fits: which runs count as what, what is shown, and the policy file, on runs counted by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from otel_loopguard.backtest import Backtest, Fit, FitError, Outcome, Said, play_files, policy_text
from otel_loopguard.backtest.fit_report import HEADING, FitOn, cautions
from otel_loopguard.backtest.outcomes import outcome_of
from otel_loopguard.environment import read_policy
from otel_loopguard.policy import Policy
from otel_loopguard.replay.recorded_run import play_run
from otel_loopguard.replay.steps_file import read_run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RUNS = Path(__file__).parents[1] / "testdata" / "backtest" / "runs.jsonl"
EMPTY = outcome_of(play_run(read_run('{"steps": []}'), Policy.none(), ""), 0)


def fit_of(
    *policies: Policy, fit_on: FitOn = "labels", labels: dict[str, Said] | None = None
) -> Fit:
    fit = Fit("mine", policies[0], fit_on)
    counting = Backtest([str(n) for n in range(len(policies))], labels, fit=fit)
    for found in play_files([str(RUNS)], policies, classify=True):
        assert isinstance(found, Outcome)
        counting.add(found)
    return fit


def fit_to(*runs: tuple[str, Said], fit_on: FitOn = "labels") -> Fit:
    """Return a fit to runs of one agent; `n` is a novel step, `a` one again."""
    fit = Fit("mine", Policy(), fit_on)
    for letters, said in runs:
        classes = tuple({"n": "novel", "a": "again"}[letter] for letter in letters)
        fit.add(_with(EMPTY, (classes,)), said)
    return fit


def _with(outcome: Outcome, classes: Sequence[tuple[str, ...]] | None) -> Outcome:
    return msgspec.structs.replace(outcome, classes=None if classes is None else tuple(classes))


LOOP, GOOD = Said("loop"), Said(None, success=True)


def test_loops_are_what_is_labelled_so_and_healthy_what_is_not_or_succeeded():
    report = fit_of(Policy()).report()
    assert (report.policy, report.fit_on, report.abort) == ("mine", "labels", 20)
    assert (report.loops, report.healthy, report.left_out) == (2, 3, 2)
    # In loops: `loop` is 1 novel step and the same 6 times again, `missed` 4 novel ones; in healthy
    # runs: 2 novel, 2 novel, and with `stubborn` 1 and 1 novel and 5 again.
    novel, again = report.classes["novel"], report.classes["again"]
    assert (novel.before, novel.in_loops, novel.in_healthy) == (-0.38, 5, 6)
    assert (again.before, again.in_loops, again.in_healthy) == (2.8, 6, 5)
    others = [found for name, found in report.classes.items() if name not in {"novel", "again"}]
    assert all(found.in_loops == found.in_healthy == 0 for found in others)
    assert all(found.after == found.before for found in others)


def test_the_curve_of_before_is_that_of_the_weights_in_force():
    # 6 x 2.8 = 16.8 for the loop and 0 for the missed one; 5 x 2.8 = 14 for `stubborn`.
    report = fit_of(Policy()).report()
    assert [point.threshold for point in report.before] == [float(n) for n in range(8, 41)]
    reached = {
        point.threshold: (point.false_aborts.count, point.caught.count) for point in report.before
    }
    assert reached == {
        float(n): (1, 1) if n <= 14 else (0, 1) if n <= 16 else (0, 0) for n in range(8, 41)
    }
    assert {(point.false_aborts.of, point.caught.of) for point in report.after} == {(3, 2)}


def test_the_first_policy_counts_with_its_own_weights_and_threshold():
    own = {"stagnation": {"warn": 4, "abort": 4.5, "weights": {"again": 1.0, "novel": 0.0}}}
    report = fit_of(Policy(rules=own), Policy()).report()
    assert report.abort == 4.5
    assert (report.loops, report.healthy, report.left_out) == (2, 3, 2)
    assert report.classes["again"].before == 1
    assert [point.threshold for point in report.before][:2] == [4.5, 8]
    assert report.before[0].false_aborts.count == report.before[0].caught.count == 1
    assert fit_of(Policy.none()).report().abort is None


def test_other_rules_have_no_say():
    strict = {"repeated_result": {"warn": 2, "abort": 2}}
    plain = fit_of(Policy()).report()
    assert fit_of(Policy(rules=strict, max_steps=3)).report() == plain


def test_labels_of_a_file_count():
    labels = {"stubborn": Said("weak"), "gave up": Said("no"), "missed": Said("no")}
    report = fit_of(Policy(), labels=labels).report()
    assert (report.loops, report.healthy, report.left_out) == (1, 4, 2)


def test_failed_runs_are_loops_only_where_that_is_asked_for():
    report = fit_of(Policy(), fit_on="failed").report()
    assert (report.fit_on, report.loops, report.healthy, report.left_out) == ("failed", 3, 3, 1)
    [few, rough] = cautions(report)
    assert few.startswith("There are 3 loops, and under 30 are too few")
    assert rough.startswith("Failed runs were taken for loops.")


@pytest.mark.parametrize(("loops", "enough"), [(29, False), (30, True)])
def test_thirty_loops_are_enough(loops: int, *, enough: bool):
    report = fit_to(("nnn", GOOD), *[("naaa", LOOP)] * loops).report()
    assert report.enough is enough
    assert list(cautions(report)) == [] if enough else len(list(cautions(report))) == 1


FAILED = Said(None, success=False)


@pytest.mark.parametrize(
    ("runs", "fit_on", "why"),
    [
        (
            [("n", GOOD)],
            "labels",
            (
                "no run is labelled a loop; give runs of steps files a field 'label', or name "
                "them in a file of --labels"
            ),
        ),
        (
            [("n", GOOD), ("na", FAILED)],
            "labels",
            (
                "no run is labelled a loop; give runs of steps files a field 'label', or name "
                "them in a file of --labels; --fit-on failed takes failed runs for loops, which "
                "is a rough guess"
            ),
        ),
        (
            [("n", GOOD)],
            "failed",
            (
                "no run is labelled a loop, and none without a label is known to have failed; "
                "give runs of steps files a field 'label' or 'success', or name them in a file "
                "of --labels"
            ),
        ),
        (
            [("naa", LOOP), ("n", Said("weak", success=True)), ("n", FAILED)],
            "labels",
            (
                "no run is known to be healthy; give runs of steps files a field 'success', or "
                'name some in a file of --labels, as "no"'
            ),
        ),
        (
            [("", LOOP), ("n", GOOD)],
            "labels",
            "the results of the loops' tool steps are not known, so they say nothing",
        ),
    ],
)
def test_what_is_missing_is_said(runs: list[tuple[str, Said]], fit_on: FitOn, why: str):
    with pytest.raises(FitError) as caught:
        fit_to(*runs, fit_on=fit_on).report()
    assert str(caught.value) == why


def test_runs_whose_steps_were_not_classified_are_left_out():
    fit = fit_to(("naa", LOOP), ("n", GOOD))
    fit.add(EMPTY, GOOD)
    assert (fit.report().healthy, fit.report().left_out) == (1, 1)


def test_the_policy_file_sets_the_weights_and_says_where_they_come_from(tmp_path: Path):
    report = fit_of(Policy()).report()
    text = policy_text(report)
    (tmp_path / "fitted.toml").write_text(text)
    policy = read_policy(tmp_path / "fitted.toml")
    novel, again = report.classes["novel"].after, report.classes["again"].after
    assert tomllib.loads(text) == {
        "rules": {"stagnation": {"weights": {"again": again, "novel": novel}}}
    }
    assert policy.settings.weights == {"again": again, "novel": novel}
    assert policy.settings.rules == Policy().settings.rules, "thresholds are those of before"
    lines = text.splitlines()
    assert lines[0] == f"{HEADING} to 2 loops and 3 healthy runs."
    assert lines[1].startswith("# There are 2 loops, and under 30 are too few")
    assert lines[4] == "#  score      false aborts      loops caught"
    assert [line.split()[1] for line in lines[5:13]] == [
        "8",
        "10",
        "12",
        "15",
        "20",
        "25",
        "30",
        "40",
    ]
    assert lines[8] == "#     15       0 -> 0 of 3       1 -> 0 of 2"
    assert lines[9].endswith("of 2  <- where the policy aborts")
    assert f"again = {again:g}  # 2.8 before; 6 steps in loops, 5 in healthy runs" in lines


def test_weights_of_the_policy_are_kept_in_the_file():
    own = {"stagnation": {"weights": {"poll": -1.5}}}
    text = policy_text(fit_of(Policy(rules=own)).report())
    assert "poll = -1.5  # -1.5 before; 0 steps in loops, 0 in healthy runs" in text.splitlines()
