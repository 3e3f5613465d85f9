"""The boards are of the types that Grafana itself is written in."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from dashboards.checks.documents import boards
from tests.dashboards._types import mistakes


def test_boards_are_as_grafana_types_them() -> None:
    assert mistakes(boards()) == ""


@pytest.mark.parametrize(
    ("panel", "path", "value", "said"),
    [
        pytest.param("stat", ("options", "colorMode"), "rainbow", '"rainbow"', id="unknown-value"),
        pytest.param(
            "timeseries",
            ("options", "legend", "place"),
            "top",
            "'\"place\"' does not exist",
            id="unknown-option",
        ),
        pytest.param("table", ("gridPos", "w"), "wide", "'number'", id="wrong-type"),
    ],
)
def test_a_mistake_is_found(panel: str, path: tuple[str, ...], value: str, said: str) -> None:
    board: dict[str, Any] = deepcopy(dict(boards()["guard-trips"]))
    part = next(each for each in board["panels"] if each["type"] == panel)
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    assert said in mistakes({"guard-trips": board})
