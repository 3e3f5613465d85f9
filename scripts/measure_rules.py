"""Measures how often each rule speaks on recorded runs, and writes docs/rules/measured.json.

    python -m scripts.measure_rules FILE_OR_FOLDER... [--labels LABELS.json]

The recordings are what `otel-loopguard backtest` reads. Each rule is measured in a policy without
any other: once one has stopped a run, nothing that the run does is news to the others. Rules that
are on by default are measured at their defaults, the others and the limits at the values below.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from otel_loopguard.backtest import Outcome, find_recordings, play_files, read_labels
from otel_loopguard.backtest.labels import Said, said_of
from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.policy import Policy

TARGET = Path(__file__).resolve().parent.parent / "docs" / "rules" / "measured.json"

LIMITS: Mapping[str, tuple[int, int, int]] = {
    "max_steps": (50, 100, 200),
    "max_llm_calls": (25, 50, 100),
    "max_tool_calls": (25, 50, 100),
    "max_total_tokens": (500_000, 1_000_000, 2_000_000),
    "max_context_tokens": (30_000, 60_000, 120_000),
    "max_consecutive_errors": (3, 5, 10),
    "max_turns_without_tool": (3, 5, 10),
    "max_repeated_calls": (3, 5, 10),
    "max_same_tool_calls": (10, 20, 50),
    "loop_pattern_window": (6, 8, 12),
}
"""What the limits are measured at."""

OPTIONAL_RULES: Mapping[str, tuple[int, int, int]] = {
    "similar_calls": (3, 6, 10),
    "similar_results": (3, 5, 8),
    "sweep": (5, 10, 20),
}
"""The thresholds for an abort that rules are measured at which are off by default."""

UNSEEN: Mapping[str, str] = {
    "repeated_call": "all their results are known, and this rule is for those that are not",
    "truncated_turns": "they do not say how model turns ended",
    "unknown_tool": "they do not say which tools the model was offered",
    "extra_turn": "they do not say whether a model turn finished the run",
    "agent_handoff_cycle": "they do not say which agent acted",
    "agent_depth": "they do not say which agent called which",
    "time_budget": "they do not say how long the steps took",
    "idle_run": "they do not say how long the steps took",
    "step_rate": "they do not say when the steps happened",
    "cost_budget": "they do not say what the calls cost",
}
"""Why the recordings can say nothing about some rules."""

NEEDS: Mapping[str, str] = {
    "llm_call_budget": "turns",
    "idle_turns": "turns",
    "repeated_output": "turns",
    "token_budget": "tokens",
    "context_budget": "tokens",
}
"""What runs must have for a rule to be measured on them; for the others it is `steps`."""

HAD = ("steps", "turns", "tokens")


class Recordings(msgspec.Struct):
    """Runs of one source, by what they have: see `HAD`."""

    runs: dict[str, int]
    succeeded: dict[str, int]
    loops: int = 0
    """Runs that a reader labelled so."""


class Spoken(msgspec.Struct):
    """In how many runs of one source a rule spoke."""

    warned: int = 0
    stopped: int = 0
    succeeded_warned: int = 0
    succeeded_stopped: int = 0
    loops_stopped: int = 0


class Line(msgspec.Struct):
    """A rule at some setting, and the sources where it spoke."""

    rule: str
    needs: str
    at: str
    """The setting, as in a policy file; empty where it is the default one."""
    by_source: dict[str, Spoken]


class Measured(msgspec.Struct):
    """All that was measured."""

    on: str
    """The day, as in ISO 8601."""
    recordings: dict[str, Recordings]
    lines: list[Line]
    together: dict[str, Spoken]
    """The default policy as a whole, by source."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recordings", nargs="+", metavar="FILE_OR_FOLDER")
    parser.add_argument("--labels", help="what readers say of runs, as `backtest` takes it")
    options = parser.parse_args(arguments)
    labels: Mapping[str, Said] = {} if options.labels is None else read_labels(options.labels)
    measured = measure(find_recordings(options.recordings).files, labels)
    if not measured.recordings:
        parser.error("there is no run in these recordings")
    text = msgspec.json.format(msgspec.json.encode(measured, order="sorted"), indent=1)
    TARGET.write_bytes(text + b"\n")
    print(f"{TARGET}: {sum(r.runs['steps'] for r in measured.recordings.values())} runs")
    return 0


def measure(files: Sequence[str], labels: Mapping[str, Said]) -> Measured:
    """Play the recordings under the policy of each line, and under the default policy.

    Raises:
        SystemExit: a file or a line cannot be read: figures of a part would mislead.

    """
    lines, policies = zip(*lines_to_measure(), strict=True)
    measured = Measured(datetime.now(timezone.utc).date().isoformat(), {}, list(lines), {})
    for found in play_files(files, (*policies, Policy())):
        if not isinstance(found, Outcome):
            raise SystemExit(f"{found.source}: line {found.line}: {found.why}")
        said = said_of(found, labels)
        if found.policy == 0:
            count_run(measured.recordings, found, said)
        if found.policy == len(lines):
            by_source, rules = measured.together, {*found.warned, *found.aborted}
        else:
            line = measured.lines[found.policy]
            by_source, rules = line.by_source, {line.rule}
        warned, stopped = (not rules.isdisjoint(each) for each in (found.warned, found.aborted))
        if warned or stopped:
            spoken = by_source.setdefault(found.origin or found.file, Spoken())
            count_spoken(spoken, said, warned=warned, stopped=stopped)
    return measured


def lines_to_measure() -> Iterator[tuple[Line, Policy]]:
    """Yield what is to be filled in, each with its policy."""
    for rule in (detector.rule for detector in DETECTORS if detector.rule not in UNSEEN):
        if rule in DEFAULT_RULES:
            yield _line(rule, "", {"rules": {rule: True}})
        elif rule in OPTIONAL_RULES:
            for value in OPTIONAL_RULES[rule]:
                yield _line(rule, f"abort = {value}", {"rules": {rule: {"abort": value}}})
        else:
            option = LIMIT_OF_RULE[rule]
            for value in LIMITS[option]:
                yield _line(rule, f"{option} = {value:_}", {"limits": {option: value}})


def _line(rule: str, at: str, said: Mapping[str, object]) -> tuple[Line, Policy]:
    policy = Policy.from_mapping(said, base=Policy.none())
    return Line(rule, NEEDS.get(rule, "steps"), at, {}), policy


def count_run(recordings: dict[str, Recordings], run: Outcome, said: Said) -> None:
    source = recordings.setdefault(
        run.origin or run.file, Recordings(dict.fromkeys(HAD, 0), dict.fromkeys(HAD, 0))
    )
    for name, is_there in zip(HAD, (True, run.model_calls > 0, run.tokens > 0), strict=True):
        source.runs[name] += is_there
        source.succeeded[name] += is_there and said.success is True
    source.loops += said.label == "loop"


def count_spoken(spoken: Spoken, said: Said, *, warned: bool, stopped: bool) -> None:
    spoken.warned += warned
    spoken.stopped += stopped
    spoken.succeeded_warned += warned and said.success is True
    spoken.succeeded_stopped += stopped and said.success is True
    spoken.loops_stopped += stopped and said.label == "loop"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
