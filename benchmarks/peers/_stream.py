"""A healthy run as long as one likes: no call and no result is like another."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator

from benchmarks.peers._adapter import Call

ARGUMENTS = 300
RESULT = 500
"""Characters of the arguments as JSON and of the result, to a word or so."""

TOOLS = (
    *("search", "fetch", "read_file", "run_query", "list_orders", "translate"),
    *("plot", "notify", "geocode", "convert", "summarise", "schedule"),
)
APART = 4
"""Other calls between two of the same tool, at least.

So that guards that look at names alone do not take chance for a cycle: what is timed is a step,
not a refusal.
"""


def _vocabulary(count: int) -> tuple[str, ...]:
    source = random.Random(7)  # noqa: S311 -- the same words every time
    letters = "abcdefghijklmnopqrstuvwxyz"
    return tuple("".join(source.choices(letters, k=source.randint(3, 10))) for _ in range(count))


WORDS = _vocabulary(4_000)


def healthy_calls(seed: int = 1) -> Iterator[Call]:
    """Yield calls without end: tools in no order, seven arguments, words drawn by chance."""
    source = random.Random(seed)  # noqa: S311 -- the same stream every time
    recent: deque[str] = deque(maxlen=APART)
    number = 0
    while True:
        number += 1
        tool = source.choice([each for each in TOOLS if each not in recent])
        recent.append(tool)
        yield Call(
            tool=tool,
            arguments={
                "query": _text(source, 70),
                "path": f"services/{source.choice(WORDS)}/{source.choice(WORDS)}.py",
                "limit": source.randrange(1, 1_000),
                "recursive": source.random() < 0.5,
                "note": _text(source, 75),
                "filters": {"language": source.choice(WORDS), "since": source.randrange(2_000)},
                "cursor": f"{number}-{source.getrandbits(64):x}",
            },
            result=_text(source, RESULT),
        )


def _text(source: random.Random, length: int) -> str:
    """Return words up to a length in characters."""
    return " ".join(source.choices(WORDS, k=length // 5))[:length]
