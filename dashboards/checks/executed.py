"""Executes every query of every board: `python -m dashboards.checks.executed http://127.0.0.1:9090`.

Takes any Prometheus that has seen a guard, and lists what came back empty: each panel, annotation
and variable, and exemplars where a panel shows them. Ends with 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dashboards.checks.documents import NOT_RUN, Document, Query, boards, queries, variables
from dashboards.checks.names import COLLECTOR

POINTS = 120
FALLBACK = " or vector(0)"
"""What a tile shows where there is nothing; it would hide that there is nothing."""
TIMEOUT_S = 30


class Prometheus(NamedTuple):
    """A Prometheus, and the time that the boards show of it."""

    url: str
    start: float
    end: float
    rate_interval_s: int

    @property
    def step(self) -> float:
        return max(1.0, (self.end - self.start) / POINTS)

    def get(self, path: str, **parameters: object) -> Any:
        """The data of an answer.

        Raises:
            RuntimeError: it refuses the query; with what it says of it.

        """
        address = f"{self.url.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310 -- given
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise RuntimeError(f"{self.url} refuses {parameters}: {said}") from error

    def asked(self, text: str) -> str:
        """A query with Grafana's variables put in, all chosen."""
        values = {
            "$__rate_interval": f"{max(self.rate_interval_s, math.ceil(self.step))}s",
            "$__range": f"{round(self.end - self.start)}s",
            "$job": ".+",
            "$agent": ".*",
            "$rule": ".*",
        }
        for name in sorted(values, key=len, reverse=True):
            text = text.replace(name, values[name])
        return text


def empty(board: Document, prometheus: Prometheus, *, collector: bool = True) -> Iterator[str]:
    """What of a board has no data.

    Args:
        board: a dashboard.
        prometheus: where the data is.
        collector: whether a collector has counted events in spans; else that is not asked for.

    """
    for query in queries(board):
        if not collector and any(name in query.expression for name in COLLECTOR):
            continue
        series = shown(query, prometheus)
        if not series:
            yield f"{query.place}: no data"
        if query.exemplars and series and not exemplars(query, prometheus):
            yield f"{query.place}: no exemplars"
    for each in variables(board):
        if each["type"] == "query" and not values(each, prometheus):
            yield f"variable {each['name']}: no values"


def shown(query: Query, prometheus: Prometheus) -> Sequence[Mapping[str, Any]]:
    """The series that a query shows: those with a number somewhere."""
    expression = prometheus.asked(query.expression.removesuffix(FALLBACK))
    if query.instant:
        found = prometheus.get("query", query=expression, time=prometheus.end)
        samples = [(each, [each["value"]]) for each in found["result"]]
    else:
        found = prometheus.get(
            "query_range",
            query=expression,
            start=prometheus.start,
            end=prometheus.end,
            step=prometheus.step,
        )
        samples = [(each, each["values"]) for each in found["result"]]
    return [each for each, points in samples if any(point[1] != "NaN" for point in points)]


def exemplars(query: Query, prometheus: Prometheus) -> list[Mapping[str, Any]]:
    found = prometheus.get(
        "query_exemplars",
        query=prometheus.asked(query.expression),
        start=prometheus.start,
        end=prometheus.end,
    )
    return [each for series in found for each in series["exemplars"]]


def values(variable: Document, prometheus: Prometheus) -> list[str]:
    asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
    if asked is None:
        raise ValueError(
            f"variable {variable['name']!r} asks {variable['query']!r}: "
            "expected label_values(SERIES, LABEL)"
        )
    found: list[str] = prometheus.get(
        f"label/{asked[2]}/values",
        **{
            "match[]": prometheus.asked(asked[1]),
            "start": prometheus.start,
            "end": prometheus.end,
        },
    )
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url", help="of the Prometheus, http://127.0.0.1:9090 for example")
    parser.add_argument("--range", type=int, default=900, help="seconds that are shown")
    parser.add_argument("--rate-interval", type=int, default=60, help="seconds, four scrapes")
    parser.add_argument("--without-collector", action="store_true")
    options = parser.parse_args(arguments)
    now = time.time()
    prometheus = Prometheus(options.url, now - options.range, now, options.rate_interval)
    run = {name: board for name, board in boards().items() if NOT_RUN not in board["title"]}
    found = {
        name: list(empty(board, prometheus, collector=not options.without_collector))
        for name, board in run.items()
    }
    for name, board in run.items():
        print(f"{name}: {len(list(queries(board)))} queries, {len(found[name])} without data")
        print(*(f"  {each}" for each in found[name]), sep="\n", end="\n" if found[name] else "")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
