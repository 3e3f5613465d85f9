"""What Grafana is told of boards and data sources holds together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dashboards.checks.documents import DIRECTORY, boards

PROVISIONING = DIRECTORY / "provisioning"
SOURCES = ("datasources/loopguard.yaml", "with-jaeger/datasources.yaml")


def read(name: str) -> Any:
    return msgspec.yaml.decode((PROVISIONING / name).read_bytes())


@pytest.mark.parametrize("name", SOURCES)
def test_a_diamond_leads_to_a_trace(name: str) -> None:
    sources = {each["uid"]: each for each in read(name)["datasources"]}
    (to,) = sources["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert to["name"] == "trace_id", "what the guard's exemplars call it"
    assert sources[to["datasourceUid"]]["type"] in {"tempo", "jaeger"}


def test_there_is_a_source_of_every_kind_that_a_board_asks_for() -> None:
    kinds = {each["type"] for each in read("datasources/loopguard.yaml")["datasources"]}
    asked = {
        variable["query"]
        for board in boards().values()
        for variable in board["templating"]["list"]
        if variable["type"] == "datasource" and "not run" not in board["title"]
    }
    assert asked <= kinds


def test_boards_are_looked_for_in_a_folder_with_nothing_else_that_is_json() -> None:
    """Grafana looks below the folder too, and takes every `*.json` for a board."""
    (provider,) = read("dashboards/loopguard.yaml")["providers"]
    assert Path(provider["options"]["path"]).is_absolute()
    assert {path.parent for path in DIRECTORY.rglob("*.json")} == {DIRECTORY}
