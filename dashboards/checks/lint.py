"""Finds what is wrong with a dashboard without running it: `python -m dashboards.checks.lint`.

The rules of Grafana's dashboard linter (titles, descriptions, units, chosen data sources, counters
only as growth, `$__rate_interval`, a matcher for the job), and names that nothing emits.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from dashboards.checks.documents import Document, Query, boards, panels, queries, variables
from dashboards.checks.names import EVERYWHERE, EXEMPLARS, GROWING, SERIES
from dashboards.checks.promql_text import (
    GROWTH,
    Selector,
    grouped,
    selectors,
    used_variables,
    without_braces,
)

COLUMNS = 24
SHORTEST_DESCRIPTION = 20
WITHOUT_UNIT = {"row", "alertlist", "text"}
DATA_SOURCES = {"${datasource}", "${traces}", "${clickhouse}"}
WINDOWS = {"$__rate_interval", "$__range"}
PARTS_LEFT_OUT = ("__name__", "!~", ".+_(bucket|sum)")
"""A matcher that leaves one name to each histogram."""
BEFORE = ("last_over_time", "1h")
"""The one fixed window: whether a series is newborn does not depend on what is shown."""


def findings(board: Document) -> list[str]:
    """What is wrong with a board; nothing, if all is well."""
    return [
        *_of_the_board(board),
        *_of_the_grid(board),
        *(finding for panel in panels(board) for finding in _of_a_panel(panel)),
        *(finding for query in queries(board) for finding in of_a_query(query)),
        *_of_variables(board),
    ]


def of_a_query(query: Query) -> Iterator[str]:
    """What is wrong with a query in PromQL."""
    known: set[str] = set(EVERYWHERE)
    for selector in selectors(query.expression):
        known |= SERIES.get(selector.metric, frozenset())
        for finding in _of_a_selector(selector):
            yield f"{query.place}: {finding}"
        if not selector.metric and "__name__" not in grouped(query.expression):
            yield f"{query.place}: counts series, not metrics: group by __name__"
        if query.exemplars and selector.metric not in EXEMPLARS:
            yield f"{query.place}: exemplars of {selector.metric} would bury the panel"
    for metric in sorted(without_braces(query.expression)):
        yield f"{query.place}: {metric} has no matchers, so the variables choose nothing"
    legend = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", query.legend))
    for label in sorted((grouped(query.expression) | legend) - known):
        yield f"{query.place}: no series that is asked for has a label {label!r}"
    for label in sorted(legend - grouped(query.expression)):
        yield f"{query.place}: the legend shows {label!r}, which the sum leaves out"
    if query.expression.count("(") != query.expression.count(")"):
        yield f"{query.place}: brackets do not match"


def _of_a_selector(selector: Selector) -> Iterator[str]:
    labels = {name for name, _, _ in selector.matchers}
    if selector.metric and selector.metric not in SERIES:
        yield f"no metric is called {selector.metric!r}"
        return
    for label in sorted(labels - SERIES.get(selector.metric, frozenset()) - EVERYWHERE):
        yield f"{selector.metric} has no label {label!r}"
    if ("job", "=~", "$job") not in selector.matchers:
        yield f'{selector.metric} without job=~"$job"'
    if any(name.startswith("telemetry_sdk") for name in labels):
        yield f"{selector.metric} by SDK: others would be empty"
    if selector.metric in GROWING and selector.inside not in GROWTH:
        yield f"the counter {selector.metric} outside of {' and '.join(GROWTH[:2])}"
    yield from _of_any_name(selector)
    window = selector.window
    if window and window not in WINDOWS and (selector.inside, window) != BEFORE:
        yield f"{selector.metric} in a fixed window of {window}"


def _of_any_name(selector: Selector) -> Iterator[str]:
    """Of metrics by a pattern of their names: a histogram is many series of three names."""
    names = [matcher for matcher in selector.matchers if matcher[0] == "__name__"]
    if names and PARTS_LEFT_OUT not in names:
        yield "a histogram counts thrice: leave out " + "".join(PARTS_LEFT_OUT)


def _of_the_board(board: Document) -> Iterator[str]:
    for name in ("uid", "title", "description", "tags", "schemaVersion", "refresh", "time"):
        if not board.get(name):
            yield f"the board has no {name}"
    if board.get("editable"):
        yield "the board can be edited in place, and the edit would be lost"
    for note in board["annotations"]["list"]:
        if note["datasource"]["uid"] not in DATA_SOURCES:
            yield f"annotation {note['name']}: a data source of one installation"
    ids = Counter(panel.get("id") for panel in panels(board))
    yield from (f"{n} panels have the id {each}" for each, n in ids.items() if n > 1 or not each)
    titles = Counter(panel.get("title") for panel in panels(board) if panel["type"] != "row")
    yield from (f"{n} panels are called {each!r}" for each, n in titles.items() if n > 1)


def _of_the_grid(board: Document) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels(board):
        place = panel["gridPos"]
        left, top = place.get("x", 0), place.get("y", 0)
        if left + place["w"] > COLUMNS:
            yield f"{panel['title']}: wider than the grid"
        cells = [
            (x, y) for x in range(left, left + place["w"]) for y in range(top, top + place["h"])
        ]
        over = {taken[cell] for cell in cells if cell in taken}
        yield from (f"{panel['title']}: lies over {other}" for other in sorted(over))
        taken |= dict.fromkeys(cells, str(panel["title"]))
    rows = {y for _, y in taken}
    for y in sorted(rows):
        wide = sum((x, y) in taken for x in range(COLUMNS))
        if wide != COLUMNS:
            yield f"row {y} of the grid has a hole: {wide} of {COLUMNS} columns"


def _of_a_panel(panel: Document) -> Iterator[str]:
    name = panel.get("title") or f"panel {panel.get('id')}"
    if not panel.get("title"):
        yield f"{name}: no title"
    if panel["type"] == "row":
        return
    if len(panel.get("description", "")) < SHORTEST_DESCRIPTION:
        yield f"{name}: no description that says what to do with it"
    if panel["type"] not in WITHOUT_UNIT and not panel["fieldConfig"]["defaults"].get("unit"):
        yield f"{name}: no unit"
    for each in (panel, *panel.get("targets", ())):
        if each.get("datasource", {}).get("uid") not in DATA_SOURCES:
            yield f"{name}: a data source of one installation"
    refs = Counter(target["refId"] for target in panel.get("targets", ()))
    yield from (f"{name}: {n} queries are called {ref}" for ref, n in refs.items() if n > 1)


def _of_variables(board: Document) -> Iterator[str]:
    declared = {each["name"] for each in variables(board)}
    used = used_variables(json.dumps(board))
    yield from (f"no variable is called {name!r}" for name in sorted(used - declared))
    yield from (f"nothing uses the variable {name!r}" for name in sorted(declared - used))
    for each in variables(board):
        if each["type"] == "query" and each["datasource"]["type"] == "prometheus":
            asked = re.fullmatch(r"label_values\((\w+)(\{.*\})?, (\w+)\)", each["query"])
            if asked is None:
                yield f"variable {each['name']}: {each['query']!r} is no label_values(...)"
            elif asked[3] not in SERIES.get(asked[1], frozenset()) | EVERYWHERE:
                yield f"variable {each['name']}: {asked[1]} has no label {asked[3]!r}"


def main(found: Iterable[str]) -> int:
    lines = list(found)
    print(*lines, sep="\n")
    return min(len(lines), 1)


if __name__ == "__main__":
    sys.exit(
        main(f"{name}: {each}" for name, board in boards().items() for each in findings(board))
    )
