"""What a backtest counts, on recordings that were counted by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from otel_loopguard import Policy
from otel_loopguard.backtest import (
    Backtest,
    BacktestReport,
    Grouping,
    Outcome,
    Rate,
    Said,
    play_files,
    read_labels,
)
from otel_loopguard.backtest.tally import median
from otel_loopguard.backtest.wilson import rate
from otel_loopguard.replay import LineCounts, Problem, replay_file
from tests._recordings import Recording, recordings

DATA = Path(__file__).parents[1] / "testdata"
RUNS = DATA / "backtest" / "runs.jsonl"
REAL = DATA / "backtest" / "tau" / "airline.jsonl.gz"
NOTHING = Policy.none()
FIVE = Policy.from_mapping({"rules": {"repeated_result": {"warn": 3, "abort": 5}}}, base=NOTHING)


def outcomes(
    *names: Path, jobs: int = 1, block: int = 1 << 22, policies: Sequence[Policy] = (FIVE,)
) -> list[Outcome]:
    found = play_files([str(name) for name in names], policies, jobs=jobs, block=block)
    return [item for item in found if isinstance(item, Outcome)]


def report(
    *names: Path,
    labels: Mapping[str, Said] | None = None,
    by: Grouping = "source",
    **policies: Policy,
) -> BacktestReport:
    counting = Backtest(tuple(policies) or ("five",), labels, by)
    for outcome in outcomes(*names, policies=tuple(policies.values()) or (FIVE,)):
        counting.add(outcome)
    return counting.report([])


def test_the_runs_counted_by_hand():
    [policy] = report(RUNS).policies
    total = policy.total
    assert (total.runs, total.succeeded, total.failed, total.success_unknown) == (7, 2, 4, 1)
    assert (total.steps, total.tokens, total.cost_usd) == (37, 1_100, 0.1)
    assert (total.tripped, total.warned) == (2, 3)
    assert total.labels == {"loop": 2, "weak": 1, "no": 1}
    assert (total.saved.steps, total.saved.tokens, total.saved.cost_usd) == (6, 220, 0.02)
    assert total.saved.steps_share == pytest.approx(6 / 37)
    assert (total.saved.tokens_share, total.saved.cost_share) == (0.2, pytest.approx(0.2))
    assert (total.false_trips.count, total.false_trips.of) == (1, 2)
    assert (total.false_warnings.count, total.failed_tripped.count) == (1, 1)
    assert (total.recall.count, total.recall.of) == (1, 2)
    assert (total.precision.count, total.precision.of) == (1, 2)
    assert total.trip_step_p50 == 5
    counts = policy.rules["repeated_result"]
    assert (counts.trips, counts.false_trips, counts.loops) == (2, 1, 1)
    assert (counts.aborts, counts.warns) == (2, 3)
    assert policy.trip_steps == {5: 1, 10: 1}
    assert (policy.false_trip_steps, policy.loop_trip_steps) == ({5: 1}, {10: 1})


def test_the_runs_that_one_should_look_at_are_listed():
    [policy] = report(RUNS).policies
    [false] = policy.false_trips
    assert (false.run_id, false.file, false.line) == ("stubborn", str(RUNS), 3)
    assert (false.rule, false.step, false.steps) == ("repeated_result", 5, 7)
    assert (false.count, false.threshold, false.saved_steps) == (5, 5, 2)
    [missed] = policy.missed_loops
    assert (missed.run_id, missed.line, missed.rule, missed.step) == ("missed", 5, None, None)


def test_labels_of_a_file_go_before_those_of_the_recording():
    found = report(RUNS, labels=read_labels(str(RUNS.with_name("labels.json"))))
    total = found.policies[0].total
    assert total.labels == {"loop": 3, "weak": 2, "no": 2}
    assert (total.succeeded, total.success_unknown) == (3, 0)
    assert (total.recall.count, total.recall.of) == (1, 3)
    assert (total.precision.count, total.precision.of) == (1, 1), "an unclear run is left out"
    assert (total.false_trips.count, total.false_trips.of) == (1, 3), "it succeeded all the same"
    assert found.unused_labels == ("nobody",)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("source", {"alpha": 3, str(RUNS): 4}),
        ("file", {str(RUNS): 7}),
        ("agent", {"(unnamed)": 4, "finder": 3}),
        ("model", {"(unnamed)": 7}),
    ],
)
def test_sets(by: Grouping, expected: dict[str, int]):
    [policy] = report(RUNS, by=by).policies
    assert {name: group.runs for name, group in policy.sets.items()} == expected
    assert sum(group.tripped for group in policy.sets.values()) == policy.total.tripped


def test_each_policy_is_counted_by_itself():
    strict = Policy.from_mapping(
        {"rules": {"repeated_result": {"warn": 2, "abort": 3}}}, base=NOTHING
    )
    found = report(RUNS, five=FIVE, strict=strict, nothing=NOTHING)
    assert [policy.policy for policy in found.policies] == ["five", "strict", "nothing"]
    assert [policy.total.tripped for policy in found.policies] == [2, 3, 0]
    assert [policy.total.runs for policy in found.policies] == [7, 7, 7]
    assert found.policies[1].trip_steps == {3: 2, 6: 1}


def test_real_runs_agree_with_replay():
    played = outcomes(REAL, policies=[Policy()])
    replayed = [run for run in replay_file(str(REAL), Policy()) if not isinstance(run, Problem)]
    assert len(played) == 7
    for mine, run in zip(played, replayed, strict=True):
        trip = next((v for v in run.violations if v.action == "abort"), None)
        assert (mine.run_id, mine.steps, mine.saved) == (run.run_id, run.steps, run.saved)
        assert (mine.trip and (mine.trip.rule, mine.trip.step)) == (trip and (trip.rule, trip.step))
        assert (mine.origin, mine.model) == ("sierra-research/tau-bench", "gpt-4o")
    [stopped] = [mine for mine in played if mine.trip]
    assert (stopped.run_id, stopped.success, stopped.trip) == (
        "tau-airline-gpt4o/9/2",
        False,
        stopped.trip,
    )


def test_spans_agree_with_replay(tmp_path: Path):
    files: list[Path] = []
    for recording in recordings("openai-agents-genai"):
        files.append(tmp_path / recording.script)
        files[-1].write_bytes(b"".join(recording.lines()))
    played = outcomes(*files)
    replayed = [run for name in files for run in replay_file(str(name), FIVE)]
    assert [(run.run_id, run.steps, run.saved, run.trip is not None) for run in played] == [
        (run.run_id, run.steps, run.saved, run.tripped)
        for run in replayed
        if not isinstance(run, Problem)
    ]
    assert any(run.trip for run in played)
    assert {run.line for run in played} == {None}
    assert all(run.duration_s > 0 for run in played)
    assert {run.agent for run in played} != {""}


def mixed(folder: Path) -> list[Path]:
    """Return files of steps, of spans, of both, and with bad lines."""
    spans = Recording("openai-agents-genai", "endless").lines()
    steps = RUNS.read_bytes().splitlines(keepends=True)
    both = [*steps[:3], *spans[:9], b"7\n", *steps[3:], b"\n", *spans[9:], b"{}\n", *steps]
    contents = {
        "a.jsonl": [b"\n", *steps * 5],
        "b.jsonl": both,
        "c.jsonl": [b'{"resourceMetrics": []}\n', *reversed(both)],
        "d.jsonl": [*spans, *steps],
        "e.jsonl": [b"7\n"] * 14 + [b"{}\n"],
    }
    for name, lines in contents.items():
        (folder / name).write_bytes(b"".join(lines))
    return [*(folder / name for name in contents), REAL, folder / "missing.jsonl"]


@pytest.mark.parametrize(("jobs", "block"), [(1, 1), (1, 3_000), (2, 3_000), (2, 1 << 22)])
def test_neither_processes_nor_pieces_change_the_result(tmp_path: Path, jobs: int, block: int):
    names = [str(name) for name in mixed(tmp_path)]

    def played(jobs: int, block: int) -> tuple[list[Outcome | Problem], list[LineCounts]]:
        counts: list[LineCounts] = []
        policies = (FIVE, NOTHING)
        found = play_files(names, policies, jobs=jobs, block=block, on_lines=counts.append)
        return list(found), counts

    expected, counts = played(1, 1 << 30)
    assert played(jobs, block) == (expected, counts)
    assert len({item.run_id for item in expected if isinstance(item, Outcome)}) > 14
    assert [(count.lines, count.bad) for count in counts][0:5:4] == [(35, 0), (15, 15)]
    problems = [
        str(item).removeprefix(f"{tmp_path}/") for item in expected if not isinstance(item, Outcome)
    ]
    assert sum(problem.startswith("e.jsonl:") for problem in problems) == 11
    assert problems[-2:] == [
        "e.jsonl: none of its 15 lines can be read",
        "missing.jsonl: it cannot be read: No such file or directory",
    ]


def test_a_mixed_file_has_the_runs_that_replay_finds(tmp_path: Path):
    for name in mixed(tmp_path)[:4]:
        replayed = [run for run in replay_file(str(name), FIVE) if not isinstance(run, Problem)]
        played = outcomes(name, block=2_000)
        assert [run.run_id for run in played] == [run.run_id for run in replayed]


def test_progress_adds_up_to_the_size_of_the_files(tmp_path: Path):
    names = [name for name in mixed(tmp_path) if name.exists()]
    size = sum(name.stat().st_size for name in names)
    for jobs in (1, 2):
        told: list[int] = []
        texts = [str(name) for name in names]
        list(play_files(texts, (NOTHING,), jobs=jobs, block=2_000, on_bytes=told.append))
        assert sum(told) == size


def test_lines_without_an_id_are_called_by_their_number_in_the_file(tmp_path: Path):
    line = json.dumps({"steps": []})
    (tmp_path / "a.jsonl").write_text(f"{line}\n" * 9)
    found = outcomes(tmp_path / "a.jsonl", block=30)
    assert [run.run_id for run in found] == [f"line-{number}" for number in range(1, 10)]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    # The intervals of the R function binom.confint(..., methods = "wilson").
    [(1, 2, 0.0945312, 0.9054688), (7, 3_098, 0.0010949, 0.0046570), (81, 263, 0.2553, 0.3662)],
)
def test_wilson(count: int, of: int, low: float, high: float):
    found = rate(count, of)
    assert found.share == count / of
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_wilson_at_the_ends():
    assert rate(0, 0) == Rate(0, 0, None, None, None)
    none, every = rate(0, 10), rate(10, 10)
    assert (none.low, none.high) == (0, pytest.approx(0.2775328))
    assert (every.low, every.high) == (pytest.approx(0.7224672), 1)


def test_median_is_a_step_at_which_runs_tripped():
    assert median(Counter()) is None
    assert median(Counter({5: 1, 9: 1})) == 5
    assert median(Counter({5: 1, 9: 2})) == 9
