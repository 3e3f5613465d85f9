"""A real Prometheus on loopback that takes remote writes with exemplars, and what it answers."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from scripts.debian_packages import programs
from scripts.stack.http_client import ask
from scripts.stack.programs import Program, free_ports, running

FETCH_S = 5
"""How often metrics are fetched, and how long that may take, where they are."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One series of an answer, at one moment."""

    metric: dict[str, str]
    value: tuple[float, str]

    @property
    def number(self) -> float:
        return float(self.value[1])


class Exemplar(msgspec.Struct, frozen=True, kw_only=True):
    """One example of what was counted."""

    labels: dict[str, str]
    timestamp: float

    @property
    def trace_id(self) -> str:
        return self.labels.get("trace_id", "")


class ExemplarsOfSeries(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The exemplars of one series."""

    series_labels: dict[str, str]
    exemplars: list[Exemplar]


class Alert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An alert that is pending or firing."""

    labels: dict[str, str]
    annotations: dict[str, str]
    state: str
    active_at: str | None = None

    @property
    def name(self) -> str:
        return self.labels["alertname"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A rule that is loaded, and how its evaluation went."""

    name: str
    query: str
    type: str
    health: str
    last_error: str = ""
    state: str = ""


class _Group(msgspec.Struct, frozen=True):
    rules: list[Rule]


class _Groups(msgspec.Struct, frozen=True):
    groups: list[_Group]


class _Alerts(msgspec.Struct, frozen=True):
    alerts: list[Alert]


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: Any


class _Rules(msgspec.Struct, frozen=True):
    data: _Groups


class _Alerting(msgspec.Struct, frozen=True):
    data: _Alerts


class _Query(msgspec.Struct, frozen=True):
    data: _Result


class _Exemplars(msgspec.Struct, frozen=True):
    data: list[ExemplarsOfSeries]


class Prometheus:
    """A Prometheus that runs."""

    def __init__(self, url: str, program: Program) -> None:
        self.url = url
        self.program = program

    def query(self, expression: str) -> list[Series]:
        """The series that an expression has now; a number has one without labels."""
        data = ask(f"{self.url}/api/v1/query", _Query, {"query": expression}).data
        if data.result_type == "scalar":
            return [Series(metric={}, value=msgspec.convert(data.result, tuple[float, str]))]
        return msgspec.convert(data.result, list[Series])

    def total(self, expression: str) -> float:
        """The sum of what an expression has now, 0 where it has nothing."""
        return sum(series.number for series in self.query(expression))

    def exemplars(self, expression: str, *, back_s: float = 3600) -> list[ExemplarsOfSeries]:
        """The exemplars of the series that an expression names, until a minute from now."""
        now = time.time()
        parameters = {"query": expression, "start": f"{now - back_s}", "end": f"{now + 60}"}
        return ask(f"{self.url}/api/v1/query_exemplars", _Exemplars, parameters).data

    def alerts(self) -> list[Alert]:
        """The alerts that are pending or firing now."""
        return ask(f"{self.url}/api/v1/alerts", _Alerting).data.alerts

    def rules(self) -> list[Rule]:
        """All rules that are loaded."""
        groups = ask(f"{self.url}/api/v1/rules", _Rules).data.groups
        return [rule for group in groups for rule in group.rules]


@contextmanager
def prometheus(
    folder: Path,
    *,
    rules: Iterable[Path] = (),
    alertmanager: str | None = None,
    agents: Iterable[str] = (),
) -> Generator[Prometheus]:
    """Run Prometheus until the block is left.

    Args:
        folder: where its data, its configuration and its log go.
        rules: the files of its rules.
        alertmanager: host and port of the one that it tells, if there is one.
        agents: hosts and ports that it fetches metrics from, as of the job `agents`.

    """
    [port] = free_ports(1)
    told = [] if alertmanager is None else [{"static_configs": [{"targets": [alertmanager]}]}]
    configuration = {
        "global": {"scrape_interval": f"{FETCH_S}s", "scrape_timeout": f"{FETCH_S}s"},
        "scrape_configs": [{"job_name": "agents", "static_configs": [{"targets": [*agents]}]}],
        "rule_files": [*map(str, rules)],
        "alerting": {"alertmanagers": told},
        # What several processes send by one collector may come in late.
        "storage": {"tsdb": {"out_of_order_time_window": "5m"}},
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration, indent=1))  # JSON is YAML
    url = f"http://127.0.0.1:{port}"
    command: list[str | Path] = [
        programs("prometheus")["prometheus"],
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-remote-write-receiver",
        "--enable-feature=exemplar-storage",
        # The harness that draws the boards asks from another port of this machine.
        "--web.cors.origin=.*",
        "--log.level=warn",
    ]
    with running("prometheus", command, folder, ready=f"{url}/-/ready") as program:
        yield Prometheus(url, program)
