"""A piece of a recorded file under several policies: read once, played once for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from otel_loopguard.backtest.labels import unclear_in
from otel_loopguard.backtest.outcomes import Outcome, outcome_of
from otel_loopguard.backtest.pieces import FilePiece, LinesPiece, Piece
from otel_loopguard.backtest.step_classes import StepClasses
from otel_loopguard.policy import Policy
from otel_loopguard.replay import Problem, RecordedRun, ReplayError
from otel_loopguard.replay.files import read_line, unit_of
from otel_loopguard.replay.recorded_run import play_run
from otel_loopguard.replay.recorded_spans import play_spans
from otel_loopguard.replay.results import Unit
from otel_loopguard.replay.source import numbered_lines
from otel_loopguard.spans import SpanRecord

KEPT = 10
"""Bad lines of a piece that are told in full; the others are counted."""


class Played(msgspec.Struct):
    """What a piece of a file holds, under each policy."""

    found: list[Outcome | Problem] = []
    """In the order of the lines; of the bad ones the first."""
    read: int = 0
    """Lines that hold something and could be read."""
    bad: int = 0
    unit: Unit = "line"
    unclear: int = 0
    """Lines that were read, but for what they say of success or label."""
    spans: list[tuple[int, bytes]] = []
    """Lines of spans, which have to wait for those of the rest of the file."""
    broken: str | None = None
    """Why the file cannot be read any further."""


def play_piece(
    piece: Piece,
    policies: Sequence[Policy],
    on_bytes: Callable[[int], object] | None = None,
    *,
    classify: bool = False,
) -> Played:
    """Play a piece; lines of spans in a piece that is not the whole file are handed back.

    `on_bytes` is told of the bytes of a whole file while it is being read. `classify` asks for the
    classes of the steps, under the first policy.
    """
    if isinstance(piece, FilePiece):
        lines = numbered_lines(piece.source, on_bytes)
        return play_lines(piece.source, lines, policies, classify=classify)
    if isinstance(piece, LinesPiece):
        numbered = enumerate(piece.lines, piece.first)
        played = play_lines(piece.source, numbered, policies, hand_back=True, classify=classify)
        played.broken = piece.broken
        return played
    return play_lines(piece.source, piece.lines, policies, classify=classify)


def play_lines(
    source: str,
    lines: Iterable[tuple[int, bytes]],
    policies: Sequence[Policy],
    *,
    hand_back: bool = False,
    classify: bool = False,
) -> Played:
    """Play numbered lines: runs of steps in the order of the lines, then those made of spans."""
    played = Played()
    spans: list[SpanRecord] = []
    try:
        for number, line in lines:
            played.unit = unit_of(line)
            try:
                found = read_line(line, number)
                if isinstance(found, RecordedRun):
                    played.found += _under_each(found, policies, source, number, classify=classify)
                    _note_unclear(played, found, source, number)
                elif found and hand_back:
                    played.spans.append((number, line))
                elif found:
                    spans += found
                played.read += found is not None
            except ReplayError as error:
                played.bad += 1
                if played.bad <= KEPT:
                    played.found.append(Problem(source=source, line=number, why=str(error)))
    except ReplayError as error:
        played.broken = str(error)
    for index, policy in enumerate(policies):
        played.found += _of_spans(spans, policy, source, index, classify=classify and not index)
    return played


def _note_unclear(played: Played, recorded: RecordedRun, source: str, line: int) -> None:
    why = "; ".join(unclear_in(recorded))
    if not why:
        return
    played.unclear += 1
    if played.unclear <= KEPT:
        played.found.append(Problem(source=source, line=line, why=why, is_read=True))


def _under_each(
    recorded: RecordedRun, policies: Sequence[Policy], source: str, line: int, *, classify: bool
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for index, policy in enumerate(policies):
        classes = StepClasses() if classify and not index else None
        played = play_run(recorded, policy, source, None if classes is None else classes.listen)
        outcomes.append(outcome_of(played, index, recorded, line, classes))
    return outcomes


def _of_spans(
    spans: list[SpanRecord], policy: Policy, source: str, index: int, *, classify: bool
) -> list[Outcome]:
    if not classify:
        return [outcome_of(played, index) for played in play_spans(spans, policy, source)]
    by_run: defaultdict[str, StepClasses] = defaultdict(StepClasses)
    every = play_spans(spans, policy, source, lambda run_id: by_run[run_id].listen(policy))
    return [outcome_of(played, index, classes=by_run[played.run.run_id]) for played in every]
