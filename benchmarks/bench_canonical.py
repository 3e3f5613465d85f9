"""What a fingerprint costs, against sorted `json.dumps` and SHA-256 of a 300-character dict."""

from __future__ import annotations

import hashlib
import json
import timeit
from collections.abc import Callable
from statistics import median

from otel_loopguard.canonical import fingerprint

ROUNDS = 60
CALLS = 1_000

DICT: dict[str, object] = {
    "query": "why does the build of the release branch fail on the second runner only",
    "path": "services/checkout/src/app/main.py",
    "limit": 10,
    "recursive": True,
    "note": "Look at the log of the last green run first, then compare the two environments.",
    "cursor": "550e8400-e29b-41d4-a716-446655440000",
    "version": "1.5.0",
}
NESTED = {**DICT, "note": ["build", "release"], "options": {"depth": 3, "follow": None, "x": ""}}


def naive(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


CASES: dict[str, Callable[[], object]] = {
    "naive, dict": lambda: naive(DICT),
    "dict": lambda: fingerprint(DICT),
    "dict with a list and a dict in it": lambda: fingerprint(NESTED),
    "dict with a fraction": lambda: fingerprint(FRACTION),
    "dict with an integral float": lambda: fingerprint(INTEGRAL),
    "dict that is not ASCII": lambda: fingerprint(FRENCH),
    "dict that is not NFC": lambda: fingerprint(DECOMPOSED),
    "dict with a set": lambda: fingerprint(SET),
    "JSON text of the dict": lambda: fingerprint(TEXT),
    "prose": lambda: fingerprint(PROSE),
}
FRACTION = {**DICT, "limit": 1.5}
INTEGRAL = {**DICT, "limit": 1.0}
FRENCH = {**DICT, "query": "où est la bibliothèque"}
DECOMPOSED = {**DICT, "query": "ou\u0300"}
SET = {**DICT, "limit": {1, 2}}
TEXT = json.dumps(DICT)
PROSE = "The build fails because the cache of the second runner is stale. " * 5


def main() -> None:
    timings: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, run in CASES.items():
            timings[name].append(timeit.timeit(run, number=CALLS) / CALLS * 1e6)
    base = median(timings["naive, dict"])
    print(f"{len(TEXT)} characters; median of {ROUNDS} interleaved rounds of {CALLS} calls\n")
    print(f"{'':36}{'µs':>8}{'ratio':>8}")
    for name, times in timings.items():
        print(f"{name:36}{median(times):8.2f}{median(times) / base:8.2f}")


if __name__ == "__main__":
    main()
