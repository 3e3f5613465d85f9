"""No board has what a look at its JSON can find; and each thing that is looked for is found."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import pytest

from dashboards.checks.documents import Query, boards
from dashboards.checks.lint import findings, of_a_query
from scripts.telemetry_registry import read


@pytest.mark.parametrize("name", sorted(boards()))
def test_nothing_is_wrong(name: str) -> None:
    assert findings(boards()[name]) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        pytest.param("uid", "", "the board has no uid", id="no-uid"),
        pytest.param("editable", True, "edited in place", id="editable"),
        pytest.param("stat.id", 100, "have the id 100", id="equal-ids"),
        pytest.param("stat.title", "Oldest run", "are called", id="equal-titles"),
        pytest.param("stat.description", "A run", "no description", id="words"),
        pytest.param("stat.fieldConfig.defaults.unit", "", "no unit", id="no-unit"),
        pytest.param("stat.datasource.uid", "P1", "one installation", id="data-source"),
        pytest.param("stat.gridPos.w", 30, "wider than", id="too-wide"),
        pytest.param("stat.gridPos.w", 5, "lies over", id="overlap"),
        pytest.param("stat.gridPos.w", 3, "has a hole", id="hole"),
        pytest.param("templating.list", [], "no variable is called 'job'", id="unknown-variable"),
    ],
)
def test_a_mistake_of_the_board_is_found(path: str, value: object, said: str) -> None:
    board: dict[str, Any] = deepcopy(dict(boards()["guard-trips"]))
    part: dict[str, Any] = board
    board["stat"] = next(panel for panel in board["panels"] if panel["type"] == "stat")
    *way, last = path.split(".")
    for name in way:
        part = part[name]
    part[last] = value
    del board["stat"]
    assert said in " ".join(findings(board))


def test_a_variable_that_nothing_uses_is_found() -> None:
    board: dict[str, Any] = deepcopy(dict(boards()["guard-trips"]))
    board["templating"]["list"].append({"name": "pod", "type": "custom"})
    assert "nothing uses the variable 'pod'" in findings(board)


RUNS = 'loopguard_runs_total{job=~"$job"}'


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        pytest.param(f"sum({RUNS})", "counter loopguard_runs_total outside", id="bare-counter"),
        pytest.param(f"sum(rate({RUNS}[5m]))", "fixed window of 5m", id="fixed-window"),
        pytest.param(
            'sum(loopguard_dreams{job=~"$job"})', "no metric is called", id="unknown-metric"
        ),
        pytest.param(
            'sum(loopguard_info{job=~"$job", pod="x"})', "has no label 'pod'", id="unknown-label"
        ),
        pytest.param("sum(loopguard_info{})", "without job", id="no-job"),
        pytest.param("sum(loopguard_info)", "has no matchers", id="no-matchers"),
        pytest.param(
            'sum by (pod) (loopguard_info{job=~"$job"})', "has a label 'pod'", id="unknown-sum"
        ),
        pytest.param('sum(loopguard_info{job=~"$job"}', "brackets", id="brackets"),
        pytest.param(
            'count({job=~"$job", __name__=~"loopguard_.+"})', "not metrics", id="series-of-any-name"
        ),
        pytest.param(
            'count by (__name__) ({job=~"$job", __name__=~"loopguard_.+"})',
            "thrice",
            id="parts-of-histograms",
        ),
    ],
)
def test_a_mistake_of_a_query_is_found(expression: str, said: str) -> None:
    assert said in " ".join(of_a_query(Query("panel", expression)))


def test_exemplars_that_bury_a_panel_are_found() -> None:
    query = Query("panel", f"sum(rate({RUNS}[$__range]))", exemplars=True)
    assert "would bury the panel" in " ".join(of_a_query(query))


def test_a_legend_that_shows_nothing_is_found() -> None:
    query = Query("panel", f"sum(rate({RUNS}[$__range]))", legend="{{loopguard_run_status}}")
    assert "which the sum leaves out" in " ".join(of_a_query(query))


@pytest.mark.parametrize("name", sorted(boards()))
def test_traces_of_an_agent_are_asked_of_the_event_that_names_it(name: str) -> None:
    """`loopguard.tripped` is on a run's topmost span, which need not name its agent."""
    text = json.dumps(boards()[name])
    [event] = [each for each in read().of_type("event") if each.name == "loopguard.violation"]
    assert re.findall(r"span\.gen_ai\.agent\.name *[=!<>]", text) == []
    asked = set(re.findall(r"\bevent\.([\w.]+)", text))
    assert asked <= {each.name for each in event.attributes}


@pytest.mark.parametrize("name", sorted(boards()))
def test_no_address_is_made_up(name: str) -> None:
    assert "example." not in json.dumps(boards()[name])
