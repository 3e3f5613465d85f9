"""The work of `otel-loopguard backtest`: from its options to its report and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import msgspec
from rich.console import Console

from otel_loopguard.backtest import (
    Backtest,
    BacktestReport,
    Fit,
    FitError,
    Grouping,
    Recordings,
    Said,
    Suggestions,
    find_recordings,
    play_files,
    policy_text,
    read_labels,
)
from otel_loopguard.backtest.fit_report import HEADING as FIT_HEADING
from otel_loopguard.backtest.fit_report import FitOn
from otel_loopguard.backtest.processes import collect_rarely, cores
from otel_loopguard.backtest.suggestions import HEADING as SUGGEST_HEADING
from otel_loopguard.cli.backtest_html import html_of
from otel_loopguard.cli.backtest_outputs import (
    details_to,
    refuse_other_policy,
    refuse_shared,
    refuse_unwritable,
    write_text,
)
from otel_loopguard.cli.complaints import Complaints
from otel_loopguard.cli.policies import is_word, read_policies, tell_warnings
from otel_loopguard.cli.progress import show_progress
from otel_loopguard.replay import Problem
from otel_loopguard.replay.source import STDIN, size_of

LONG_INPUT = 1_000_000
"""Bytes from which a progress bar, and more than one process, are worth it (gzip packs well)."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command, as given."""

    files: Sequence[str]
    policies: Sequence[str]
    labels: str | None
    by: Grouping
    as_json: bool
    html: str | None
    details: str | None
    suggest: str | None
    fit: str | None
    fit_on: FitOn
    jobs: int | None
    strict: bool


def carry_out(wanted: Wanted, console: Console) -> tuple[BacktestReport, bool]:
    """Play the recordings and write the files that are wanted; `console` hears of what goes wrong.

    Returns the report, and whether there was something to read and all of it could be read.

    Raises:
        PolicyError: a policy cannot be read or followed.
        LabelError: the labels cannot be read.
        OutputError: a file cannot be written.
        concurrent.futures.BrokenExecutor: a process died.

    """
    collect_rarely()
    policies = read_policies(wanted.policies)
    recordings = find_recordings(wanted.files)
    _refuse_outputs(wanted, recordings)
    tell_warnings(policies, console)
    complaints = Complaints(console)
    labels, complete = _labels(wanted, complaints)
    suggestions = None if wanted.suggest is None else Suggestions()
    name, policy = next(iter(policies.items()))
    fit = None if wanted.fit is None else Fit(name, policy, wanted.fit_on)
    counting = Backtest(tuple(policies), labels, wanted.by, suggestions, fit)
    _tell_of(recordings, console)
    complete = complete and not recordings.empty
    complete = complete and not (wanted.strict and recordings.passed_over)
    with ExitStack() as stack:
        tell = None if wanted.details is None else details_to(wanted.details, stack)
        for item in play_files(
            recordings.files,
            tuple(policies.values()),
            jobs=wanted.jobs or _jobs_for(recordings.files),
            on_bytes=show_progress(
                stack, console, recordings.files, as_json=wanted.as_json, long_input=LONG_INPUT
            ),
            on_lines=complaints.end_lines,
            classify=fit is not None,
        ):
            if isinstance(item, Problem):
                complete = complete and item.line is not None and not wanted.strict
                complaints.add(item)
                continue
            row = counting.add(item)
            if tell is not None:
                tell(row)
    report = counting.report(complaints.files)
    if fit is not None:
        try:
            report = msgspec.structs.replace(report, fit=fit.report())
        except FitError as error:
            console.print(f"otel-loopguard: --fit: {error}")
            complete = False
    if wanted.html is not None:
        write_text(wanted.html, html_of(report))
    if wanted.suggest is not None and suggestions is not None:
        write_text(wanted.suggest, suggestions.policy_text())
    if wanted.fit is not None and report.fit is not None:
        write_text(wanted.fit, policy_text(report.fit))
    return report, complete


def _labels(wanted: Wanted, complaints: Complaints) -> tuple[Mapping[str, Said] | None, bool]:
    """Return the labels, and whether nothing in them stands in the way of `--strict`."""
    if wanted.labels is None:
        return None, True
    unclear: list[str] = []
    labels = read_labels(wanted.labels, on_unclear=unclear.append)
    complaints.add_unclear(wanted.labels, unclear)
    return labels, not (wanted.strict and unclear)


def _refuse_outputs(wanted: Wanted, recordings: Recordings) -> None:
    outputs = {
        "--html": wanted.html,
        "--details": wanted.details,
        "--suggest": wanted.suggest,
        "--fit": wanted.fit,
    }
    inputs = [("the recording", name) for name in recordings.files if name != STDIN]
    inputs += [("the policy", path) for path in wanted.policies if not is_word(path)]
    inputs += [] if wanted.labels is None else [("the labels", wanted.labels)]
    refuse_shared([(option, path) for option, path in outputs.items() if path is not None], inputs)
    for path in (wanted.html, wanted.suggest, wanted.fit):
        if path is not None:
            refuse_unwritable(path)
    if wanted.suggest is not None:
        refuse_other_policy(wanted.suggest, "--suggest", SUGGEST_HEADING)
    if wanted.fit is not None:
        refuse_other_policy(wanted.fit, "--fit", FIT_HEADING)


def _tell_of(recordings: Recordings, console: Console) -> None:
    for name in recordings.passed_over:
        console.print(f"{name}: passed over: it is no recording")
    for name in recordings.empty:
        console.print(f"{name}: there is no recording in this folder")


def _jobs_for(files: Sequence[str]) -> int:
    """Return how many processes are worth it."""
    size = sum(size_of(name) or 0 for name in files)
    return 1 if STDIN not in files and size < LONG_INPUT else cores()
