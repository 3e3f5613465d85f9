"""The committed boards are what the generator makes, and Grafana's SDK reads them back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.checks.documents import DIRECTORY, boards
from dashboards.generator.__main__ import BOARDS
from dashboards.generator.board import encoded

NAMES = sorted(BOARDS)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_what_the_generator_makes(name: str) -> None:
    written = (DIRECTORY / f"{name}.json").read_text(encoding="utf-8")
    assert written == encoded(BOARDS[name]()), "stale: run `make dashboards`"


def test_there_is_no_file_that_nothing_makes() -> None:
    assert sorted(boards()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_comes_back_as_it_was(name: str) -> None:
    register_default_plugins()
    board = boards()[name]
    reader: Any = Dashboard  # what it is made from is untyped
    again = json.loads(encoded(reader.from_json(dict(board))))
    assert again == board


@pytest.mark.parametrize("name", NAMES)
def test_ids_stay_when_a_row_before_grows(name: str) -> None:
    ids = [panel.id_val for panel in BOARDS[name]().panels or [] if isinstance(panel, Panel)]
    assert all(number is not None and number % 100 for number in ids), "rows have the hundreds"
