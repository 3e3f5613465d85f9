"""Pieces of files over many processes, their results in the order of the pieces."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial

from otel_loopguard.backtest.pieces import FilePiece, LinesPiece, Piece
from otel_loopguard.backtest.playing import Played, play_piece
from otel_loopguard.policy import Policy

_AHEAD = 2
"""Pieces for each process that are read before the first of them is done."""

_ALLOCATIONS = 50_000
"""New objects between two looks for garbage; by default Python takes some hundreds."""

_plays: list[Callable[[Piece], Played]] = []
"""In a process that plays pieces: how it does."""


def cores() -> int:
    """Return how many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def collect_rarely() -> None:
    """Let this process look for garbage in cycles less often, which saves a seventh of the time.

    Recordings are many plain objects, which are looked through in vain again and again.
    """
    gc.set_threshold(_ALLOCATIONS, 50, 1_000)


def in_order(
    pieces: Iterable[Piece],
    policies: Sequence[Policy],
    jobs: int,
    on_bytes: Callable[[int], object] | None = None,
    *,
    classify: bool = False,
) -> Iterator[tuple[Piece, Played]]:
    """Play pieces in `jobs` processes (in this one if `jobs` is 1), and yield them in their order.

    `on_bytes` is told of the bytes of the pieces that have been played; `classify` is that of
    `play_piece`.

    Raises:
        concurrent.futures.BrokenExecutor: a process died, as one does that takes too much memory.

    """
    if jobs == 1:
        for piece in pieces:
            yield piece, play_piece(piece, policies, on_bytes, classify=classify)
            _tell(piece, on_bytes, told=isinstance(piece, FilePiece))
        return
    # Not forked: threads of this process (a progress bar has one) may hold locks.
    play = partial(play_piece, policies=list(policies), classify=classify)
    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (play,))
    under_way: deque[tuple[Piece, Future[Played] | None]] = deque()
    try:
        for piece in pieces:
            sent = isinstance(piece, (FilePiece, LinesPiece))
            under_way.append((piece, executor.submit(_play, piece) if sent else None))
            while len(under_way) > _AHEAD * jobs:
                yield _result(under_way, play, on_bytes)
        while under_way:
            yield _result(under_way, play, on_bytes)
    finally:
        executor.shutdown(cancel_futures=True)


def _result(
    under_way: deque[tuple[Piece, Future[Played] | None]],
    play: Callable[[Piece], Played],
    on_bytes: Callable[[int], object] | None,
) -> tuple[Piece, Played]:
    piece, future = under_way.popleft()
    played = play(piece) if future is None else future.result()
    _tell(piece, on_bytes)
    return piece, played


def _tell(piece: Piece, on_bytes: Callable[[int], object] | None, *, told: bool = False) -> None:
    if on_bytes is not None and not told:
        on_bytes(piece.size)


def _begin(play: Callable[[Piece], Played]) -> None:
    # An interrupt is the parent's to handle; here it would only be printed, once for each process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_rarely()
    _plays[:] = [play]


def _play(piece: Piece) -> Played:
    return _plays[0](piece)
