"""Every query of every board has data where a real guard is watched by a real Prometheus."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest

from dashboards.checks.documents import Query, boards
from dashboards.checks.executed import Prometheus, empty, shown
from dashboards.checks.watched import watched

LONGEST_S = 90
SHOWN_S = 60
RATE_INTERVAL_S = 8


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with watched(scrape_s=1) as address:
        yield address


def seen(url: str) -> Prometheus:
    now = time.time()
    return Prometheus(url, now - SHOWN_S, now, RATE_INTERVAL_S)


def test_no_panel_annotation_or_variable_is_empty(url: str) -> None:
    """Rare things have to happen first; what is empty at last is empty."""
    until = time.monotonic() + LONGEST_S
    missing = ["not asked yet"]
    while missing and time.monotonic() < until:
        time.sleep(2)
        prometheus = seen(url)
        missing = [
            f"{name}: {each}"
            for name, board in boards().items()
            for each in empty(board, prometheus, collector=False)
        ]
    assert missing == []


def test_a_metric_that_nobody_emits_is_found(url: str) -> None:
    assert shown(Query("odd", "sum(loopguard_dreams_total) or vector(0)"), seen(url)) == []


def test_a_query_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(RuntimeError, match="parse error"):
        shown(Query("odd", "sum(("), seen(url))
