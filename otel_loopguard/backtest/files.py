"""Many recorded files -> the outcome of each run under each policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from otel_loopguard.backtest.outcomes import Outcome
from otel_loopguard.backtest.pieces import BLOCK, pieces_of
from otel_loopguard.backtest.playing import KEPT, Played, play_lines
from otel_loopguard.backtest.processes import in_order
from otel_loopguard.policy import Policy
from otel_loopguard.replay import LineCounts, Problem


def play_files(
    names: Sequence[str],
    policies: Sequence[Policy],
    *,
    jobs: int = 1,
    block: int = BLOCK,
    on_bytes: Callable[[int], object] | None = None,
    on_lines: Callable[[LineCounts], object] | None = None,
    classify: bool = False,
) -> Iterator[Outcome | Problem]:
    """Play recorded files (plain or gzip; `-` is standard input) under each of the policies.

    The outcomes come in the order of the files and, in one, of the lines, those made of spans last;
    `jobs`, the number of processes, changes nothing about them. More than one are started anew, so
    that a script needs `if __name__ == "__main__":` around what it does. Of the bad lines of a file
    the first ten come as a `Problem`, and so do the first ten that were read but for what they say
    of success or label; a `Problem` without a line says that the file, or every line
    of it, could not be read. `on_bytes` is told now and then how many bytes were read since the
    last time, `on_lines` at the end of a file how many lines it had. `classify` asks for the
    `classes` of outcomes under the first policy, which `Fit` takes.

    Raises:
        concurrent.futures.BrokenExecutor: a process died, as one does that takes too much memory.

    """
    pieces = chain.from_iterable(pieces_of(name, block=block) for name in names)
    file, told = Played(), Counter[bool]()
    for piece, played in in_order(pieces, policies, jobs, on_bytes, classify=classify):
        for found in played.found:
            if isinstance(found, Problem):
                told[found.is_read] += 1
                if told[found.is_read] > KEPT:
                    continue
            yield found
        file = Played(
            read=file.read + played.read,
            bad=file.bad + played.bad,
            unclear=file.unclear + played.unclear,
            spans=[*file.spans, *played.spans],
            unit=played.unit,
        )
        if not piece.is_last:
            continue
        if on_lines is not None:
            on_lines(
                LineCounts(
                    source=piece.source,
                    lines=file.read + file.bad,
                    bad=file.bad,
                    unclear=file.unclear,
                    unit=file.unit,
                )
            )
        if played.broken is not None:
            yield Problem(source=piece.source, line=None, why=played.broken)
        if file.spans:
            yield from play_lines(piece.source, file.spans, policies, classify=classify).found
        if file.bad and not file.read:
            why = f"none of its {file.bad} {file.unit}s can be read"
            yield Problem(source=piece.source, line=None, why=why)
        file, told = Played(), Counter[bool]()
