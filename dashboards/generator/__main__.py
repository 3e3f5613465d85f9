"""Writes dashboards/*.json: `python -m dashboards.generator`, or `make dashboards`.

The files are what Grafana reads, so they are committed; a test tells when they are stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.generator.board import encoded
from dashboards.generator.guard_health import guard_health
from dashboards.generator.guard_trips import guard_trips
from dashboards.generator.runs_and_budgets import runs_and_budgets
from dashboards.generator.tripped_traces import tripped_traces

DIRECTORY = Path(__file__).resolve().parent.parent
BOARDS: Mapping[str, Callable[[], Dashboard]] = {
    "guard-trips": guard_trips,
    "runs-and-budgets": runs_and_budgets,
    "guard-health": guard_health,
    "tripped-traces": tripped_traces,
}


def main() -> None:
    for name, made in BOARDS.items():
        (DIRECTORY / f"{name}.json").write_text(encoded(made()), encoding="utf-8")


if __name__ == "__main__":
    main()
