r"""Writes the alert rules again as Grafana's own, from those for Prometheus. `make alerts` runs it.

    python -m scripts.grafana_alerts
    python -m scripts.grafana_alerts --to /etc/loopguard \
        --runbooks 'https://docs.example.com/runbooks/{}.html' --boards https://grafana.example.com

The first writes `dashboards/alerting/grafana/loopguard.yaml`; a test tells when it is stale. The
second writes both kinds of rules, and the boards, into another folder, with links that lead
somewhere: as they are committed they name the pages of this project, and the paths of the boards.

Grafana keeps no recorded rules of Prometheus's, so each query has in it what Prometheus records.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from scripts.alert_rules import (
    ALERTING,
    RULES,
    RUNBOOKS,
    Alert,
    Record,
    alerts,
    apart,
    groups,
    inlined,
    page_of,
)

TARGET = ALERTING / "grafana" / "loopguard.yaml"
FOLDER = "otel-loopguard"
DATA_SOURCE = "prometheus"
LONGEST_UID = 40
HEAD = """\
# Written by `make alerts` from ../rules; change it there.
# Grafana's own alert rules, for /etc/grafana/provisioning/alerting. NOT RUN IN GRAFANA: the
# structure is checked against what Grafana's provisioning reads, the queries run on Prometheus.
# They ask the data source with the uid {source!r}; `--datasource` writes another.
"""


class _Text(yaml.SafeDumper):
    """Writes texts of several lines as they are, and says nothing twice by reference."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base asks so
        return True


def _as_block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar(  # pyright: ignore[reportUnknownMemberType] - open in the stubs
        "tag:yaml.org,2002:str", text, style=style
    )


_Text.add_representer(str, _as_block)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, help="write rules and boards into this folder")
    parser.add_argument("--runbooks", default=RUNBOOKS, help="where a page is; {} is its name")
    parser.add_argument("--boards", default="", help="the address of Grafana")
    parser.add_argument("--datasource", default=DATA_SOURCE, help="the uid of the data source")
    options = parser.parse_args(arguments)
    if "{}" not in options.runbooks:
        parser.error(f"--runbooks {options.runbooks!r}: expected a {{}} where the page's name goes")
    texts = {
        path.name: linked(path.read_text(), options.runbooks, options.boards)
        for path in sorted(RULES.glob("*.yaml"))
    }
    target = options.to / "grafana" / TARGET.name if options.to else TARGET
    written = {target: provisioning(list(texts.values()), options.datasource)}
    if options.to:
        written |= {options.to / "rules" / name: text for name, text in texts.items()}
        written |= {
            options.to / "boards" / path.name: board_linked(path.read_text(), options.runbooks)
            for path in sorted(ALERTING.parent.glob("*.json"))
        }
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path)
    return 0


def linked(rules: str, runbooks: str, boards: str) -> str:
    """The text of a file of rules with links to these places."""
    before, after = map(re.escape, RUNBOOKS.split("{}"))
    found = re.compile(rf"(?<=runbook_url: ){before}([\w-]+){after}")
    with_pages = found.sub(lambda page: page_of(page[1], runbooks), rules)
    return with_pages.replace("dashboard_url: '/d/", f"dashboard_url: '{boards}/d/")


def board_linked(board: str, runbooks: str) -> str:
    """The text of a board whose link to the runbooks leads to this place."""
    committed, wanted = (json.dumps(page_of("index", each)) for each in (RUNBOOKS, runbooks))
    return board.replace(f'"query": {committed}', f'"query": {wanted}')


def provisioning(texts: Sequence[str] | None = None, source: str = DATA_SOURCE) -> str:
    """The file for Grafana, made of the texts of files of rules; of those committed if none."""
    of = groups(texts)
    every, records = alerts(of), [record for group in of for record in group.records]
    document = {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": group.name,
                "folder": FOLDER,
                "interval": group.interval,
                "rules": [rule(alert, every, records, source) for alert in group.alerts],
            }
            for group in of
        ],
    }
    body = yaml.dump(  # pyright: ignore[reportUnknownMemberType] - the width is open in the stubs
        document, Dumper=_Text, sort_keys=False, width=10_000, allow_unicode=True
    )
    return HEAD.format(source=source) + body


def rule(
    alert: Alert, every: Sequence[Alert], records: Sequence[Record], source: str
) -> Mapping[str, object]:
    """One of Grafana's rules. What its query returns fires: Prometheus has compared already."""
    which = apart(alert, every)
    uid = f"{alert.page}-{which}" if which else alert.page
    if len(uid) > LONGEST_UID:
        raise ValueError(
            f"{alert.alert} ({which}): uid {uid!r} has {len(uid)} characters, expected at most "
            f"{LONGEST_UID}; shorten the alert's name or the label that tells its rules apart"
        )
    return {
        "uid": uid,
        "title": f"{alert.alert} ({which})" if which else alert.alert,
        "condition": "B",
        "data": [query(inlined(alert.expr, records), source), above_nothing()],
        # No series is the good case, since only what breaks a threshold is returned.
        "noDataState": "OK",
        "execErrState": "Error",
        "for": alert.for_,
        "labels": dict(alert.labels),
        # In Grafana `$value` is a text about all queries, `$values.A.Value` the number.
        "annotations": {
            name: re.sub(r"\$value\b", "$values.A.Value", text)
            for name, text in alert.annotations.items()
        },
    }


def query(expr: str, source: str) -> Mapping[str, object]:
    """Asks Prometheus once, for now."""
    return {
        "refId": "A",
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": source,
        "model": {
            "refId": "A",
            "datasource": {"type": "prometheus", "uid": source},
            "expr": expr,
            "instant": True,
            "range": False,
            "intervalMs": 1000,
            "maxDataPoints": 43200,
        },
    }


def above_nothing() -> Mapping[str, object]:
    """Holds for every series that is there: all that these rules return is above 0."""
    return {
        "refId": "B",
        "relativeTimeRange": {"from": 600, "to": 0},
        "datasourceUid": "__expr__",
        "model": {
            "refId": "B",
            "datasource": {"type": "__expr__", "uid": "__expr__"},
            "type": "threshold",
            "expression": "A",
            "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        },
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
