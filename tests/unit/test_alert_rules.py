"""Alert rules speak of names that the guard writes; each has its page, its row and its tests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest
import yaml

from otel_loopguard.registry import metrics, names
from otel_loopguard.registry.metric import Metric
from otel_loopguard.stopwatch import EVERY as EVERY_SPAN
from scripts.alert_rules import ALERTING, RULES, Alert, Record, alerts, apart, groups, inlined

DOCS = ALERTING.parent.parent / "docs"
RUNBOOKS = DOCS / "runbooks"
SECTIONS = ["Is it urgent?", "Look at", "Do", "Tune or silence", "What it cannot tell"]
BOARDS = {"loopguard-trips", "loopguard-runs", "loopguard-health"}
EVERY = alerts()
NAMES = sorted({alert.alert for alert in EVERY})
RECORDS = [record for group in groups() for record in group.records]
EXPRESSIONS = {f"{rule.alert}-{apart(rule, EVERY)}".strip("-"): rule.expr for rule in EVERY} | {
    record.record: record.expr for record in RECORDS
}

UNITS = {"s": "_seconds"}
LABELS = {
    *("job", "instance", "le", "__name__", "otel_metric_overflow"),
    "metric",  # made by a rule, of `__name__`
    *(name.replace(".", "_") for name in vars(names).values() if isinstance(name, str)),
}
BUSY = {"loopguard_guard_duration_seconds_bucket", "loopguard_guard_duration_seconds_count"}
"""Grow with every span: what their series are born with makes no difference."""


def of_prometheus(metric: Metric) -> Iterator[str]:
    """What a metric is called there; of a histogram the three parts."""
    name = metric.name.replace(".", "_") + UNITS.get(metric.unit, "")
    if metric.kind == "histogram":
        yield from (f"{name}_bucket", f"{name}_sum", f"{name}_count")
    else:
        yield f"{name}_total" if metric.kind == "counter" else name


SERIES = {
    name
    for metric in vars(metrics).values()
    if isinstance(metric, Metric)
    for name in of_prometheus(metric)
}


def without_recorded(expr: str) -> str:
    return re.sub(r"\b[a-z]\w*(:\w+)+", "", expr)


@pytest.mark.parametrize("rule", EXPRESSIONS)
def test_a_rule_asks_for_metrics_and_labels_that_the_guard_writes(rule: str):
    expr = re.sub(r"#.*", "", without_recorded(EXPRESSIONS[rule]))
    outside_of_text = re.sub(r'"[^"]*"', '""', expr)
    grouped = re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", outside_of_text)
    matched = re.findall(r"\b(\w+)(?:=~|!~|!=|=)(?=\")", outside_of_text)
    labels = {label.strip() for part in grouped for label in part.split(",")} | set(matched)

    assert set(re.findall(r"\bloopguard_\w+", outside_of_text)) - LABELS <= SERIES
    assert labels - {""} <= LABELS


@pytest.mark.parametrize("rule", EXPRESSIONS)
def test_a_count_sees_what_a_series_is_born_with(rule: str):
    expr = " ".join(EXPRESSIONS[rule].split())
    for selector, window in re.findall(r"(?:increase|rate)\((\w+(?:\{[^}]*\})?)\[(\w+)\]\)", expr):
        if selector not in BUSY:
            seen = f"max_over_time({selector}[{window}]) unless last_over_time({selector}[1h]"
            whole = f"({seen} offset {window})) or increase({selector}[{window}])"
            assert whole in expr.replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_says_what_is_wrong_what_to_do_and_where_to_look(name: str):
    for rule in (alert for alert in EVERY if alert.alert == name):
        assert set(rule.annotations) == {"summary", "description", "runbook_url", "dashboard_url"}
        assert rule.annotations["runbook_url"] == f"docs/runbooks/{rule.page}.md"
        assert rule.labels["severity"] in {"critical", "warning", "info"}
        board = re.match(r"/d/([\w-]+)", rule.annotations["dashboard_url"])
        assert board
        assert board[1] in BOARDS


def test_there_is_a_runbook_for_each_alert_and_an_alert_for_each_runbook():
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"index"}

    assert pages == {alert.page for alert in EVERY}


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_has_all_its_parts_and_they_are_about_its_alert(name: str):
    page = next(alert.page for alert in EVERY if alert.alert == name)
    text = (RUNBOOKS / f"{page}.md").read_text()

    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    for query in re.findall(r"^ *```text\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        assert set(re.findall(r"\bloopguard_\w+", re.sub(r'"[^"]*"', "", query))) - LABELS <= SERIES


def test_the_runbook_says_below_how_many_spans_nothing_is_said_of_overhead():
    [least] = re.findall(r"seconds_count\[10m\]\)\) > (\d+)", EXPRESSIONS["LoopguardOverheadHigh"])
    text = (RUNBOOKS / "loopguard-overhead-high.md").read_text()

    assert f"One span in {EVERY_SPAN} is measured" in text
    assert f"fewer than {EVERY_SPAN * int(least):,} spans in 10 minutes" in text


def test_the_overview_has_a_row_for_each_rule_as_it_is():
    rows = re.findall(
        r"^\| \[`(\w+)`\]\(runbooks/([\w-]+)\.md\) \| (.*?) \| (\w+) \|",
        (DOCS / "alerts.md").read_text(),
        re.MULTILINE,
    )
    told = {(name, page, severity, for_) for name, page, severity, for_ in rows}

    expected: dict[tuple[str, str], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for alert in EVERY:
        severities, times = expected[alert.alert, alert.page]
        severities.append(alert.labels["severity"])
        times.append(alert.for_)
    assert told == {
        (name, page, ", ".join(dict.fromkeys(severities)), times[0])
        for (name, page), (severities, times) in expected.items()
    }


Case = Mapping[str, Any]


def cases() -> Sequence[Case]:
    """What is said of alerts in the tests for promtool: at which time, which of them fire."""
    documents = [yaml.safe_load(path.read_text()) for path in (ALERTING / "tests").glob("*.yaml")]
    return [
        cast("Case", case)
        for document in documents
        for test in document["tests"]
        for case in test["alert_rule_test"]
    ]


def fires(rule: Alert, case: Case) -> bool:
    return case["alertname"] == rule.alert and any(
        rule.labels.items() <= fired["exp_labels"].items() for fired in case["exp_alerts"]
    )


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: f"{rule.alert}-{apart(rule, EVERY)}")
def test_each_rule_is_tested_where_it_fires_and_where_it_does_not(rule: Alert):
    tested = [case for case in cases() if case["alertname"] == rule.alert]

    assert any(fires(rule, case) for case in tested)
    assert any(not fires(rule, case) for case in tested)


def test_each_file_of_rules_has_tests():
    tested = {
        (path.parent / file).resolve()
        for path in (ALERTING / "tests").glob("*.yaml")
        for file in yaml.safe_load(path.read_text())["rule_files"]
    }

    assert tested == set(RULES.glob("*.yaml"))


def test_recorded_rules_are_put_in_with_all_that_they_are_made_of():
    records = [
        Record(record="a:x:sum", expr="sum by (a) (x)  # of all\n"),
        Record(record="a:y:ratio", expr="y / a:x:sum"),
    ]

    expr = inlined("a:y:ratio > 0.5 # TUNE\nand a:x:sum > 2", records)

    assert expr == "(\ny / (\nsum by (a) (x)\n)\n) > 0.5\nand (\nsum by (a) (x)\n) > 2"
