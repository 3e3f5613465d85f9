"""Grafana's own alert rules are those for Prometheus, in the structure that it reads."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import yaml

from scripts import grafana_alerts
from scripts.alert_rules import ALERTING, RULES, RUNBOOKS, alerts
from scripts.grafana_alerts import LONGEST_UID, TARGET, linked, main, provisioning


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What Grafana's provisioning reads; a key that it does not know is a mistake."""


class Evaluator(Given, frozen=True):
    type: Literal["gt", "lt", "within_range", "outside_range"]
    params: list[float]


class Condition(Given, frozen=True):
    evaluator: Evaluator


class Source(Given, frozen=True):
    type: Literal["prometheus", "__expr__"]
    uid: str


class Model(Given, frozen=True):
    """Of both kinds of queries, to Prometheus and of Grafana's expressions."""

    refId: Literal["A", "B"]  # noqa: N815 -- as Grafana calls them
    datasource: Source
    expr: str = ""
    instant: bool = False
    range: bool = False
    intervalMs: int = 1000  # noqa: N815
    maxDataPoints: int = 43200  # noqa: N815
    type: Literal["threshold", ""] = ""
    expression: str = ""
    conditions: list[Condition] = []


class TimeRange(Given, frozen=True):
    from_: int = msgspec.field(name="from")
    to: int


class Query(Given, frozen=True):
    refId: Literal["A", "B"]  # noqa: N815
    relativeTimeRange: TimeRange  # noqa: N815
    datasourceUid: str  # noqa: N815
    model: Model


class Rule(Given, frozen=True):
    uid: str
    title: str
    condition: Literal["A", "B"]
    data: list[Query]
    noDataState: Literal["Alerting", "NoData", "OK", "KeepLast"]  # noqa: N815
    execErrState: Literal["Alerting", "Error", "OK", "KeepLast"]  # noqa: N815
    for_: str = msgspec.field(name="for")
    labels: dict[str, str]
    annotations: dict[str, str]


class Group(Given, frozen=True):
    orgId: int  # noqa: N815
    name: str
    folder: str
    interval: str
    rules: list[Rule]


class Provisioning(Given, frozen=True):
    apiVersion: Literal[1]  # noqa: N815
    groups: list[Group]


def written() -> Provisioning:
    return msgspec.convert(yaml.safe_load(TARGET.read_text()), Provisioning)


def test_the_file_is_what_the_rules_say_now():
    assert TARGET.read_text() == provisioning(), "run `make alerts`"


def test_it_has_the_structure_that_grafana_reads():
    rules = [rule for group in written().groups for rule in group.rules]

    assert len(rules) == len(alerts())
    for rule in rules:
        assert re.fullmatch(r"[a-z0-9-]+", rule.uid)
        assert len(rule.uid) <= LONGEST_UID
        assert re.fullmatch(r"(\d+[smhd])+", rule.for_)
        asked, compared = rule.data
        assert (asked.model.expr, asked.model.instant) != ("", False)
        assert asked.datasourceUid == asked.model.datasource.uid != "__expr__"
        assert compared.datasourceUid == compared.model.datasource.uid == "__expr__"
        assert (compared.model.type, compared.model.expression) == ("threshold", asked.refId)
        assert rule.condition == compared.refId


def test_uids_and_titles_are_unique_as_grafana_wants_them():
    rules = [rule for group in written().groups for rule in group.rules]

    for count in (Counter(rule.uid for rule in rules), Counter(rule.title for rule in rules)):
        assert max(count.values()) == 1


def test_nothing_in_it_is_taken_for_a_variable_of_the_environment():
    for group in written().groups:
        for rule in group.rules:
            assert "$" not in "".join((group.folder, rule.uid, rule.title, *rule.labels.values()))
            assert "${" not in "".join(rule.annotations.values())


def test_texts_speak_of_the_number_as_grafana_has_it():
    annotations = [
        text for g in written().groups for r in g.rules for text in r.annotations.values()
    ]

    assert not [text for text in annotations if re.search(r"\$value\b", text)]
    assert [text for text in annotations if "$values.A.Value | humanizeDuration" in text]


@pytest.mark.parametrize("file", sorted(RULES.glob("*.yaml")), ids=lambda file: file.stem)
def test_links_lead_where_they_are_told_to_and_nothing_else_changes(file: Path):
    text = linked(
        file.read_text(), "https://docs.example.com/{}.html", "https://grafana.example.com"
    )

    assert linked(file.read_text(), RUNBOOKS, "") == file.read_text()
    assert RUNBOOKS.split("{}", maxsplit=1)[0] not in re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    for group in yaml.safe_load(text)["groups"]:
        for rule in group["rules"]:
            links: dict[str, Any] = rule.get("annotations", {})
            for where in ("runbook_url", "dashboard_url"):
                assert links.get(where, "https://").startswith("https://")


def test_both_kinds_are_written_into_another_folder(tmp_path: Path):
    to = [
        "--to",
        str(tmp_path),
        "--runbooks",
        "https://docs.example.com/{}",
        "--datasource",
        "mine",
    ]

    assert main(to) == 0
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.yaml")}
    assert files == {"grafana/loopguard.yaml", *(f"rules/{file.name}" for file in RULES.glob("*"))}
    grafana = (tmp_path / "grafana" / "loopguard.yaml").read_text()
    assert "runbook_url: https://docs.example.com/loopguard-absent\n" in grafana
    assert {q.datasourceUid for q in all_queries(grafana)} == {"mine", "__expr__"}


def test_the_boards_go_with_them_and_lead_to_the_runbooks(tmp_path: Path):
    assert main(["--to", str(tmp_path), "--runbooks", "https://docs.example.com/{}.html"]) == 0

    committed = sorted(ALERTING.parent.glob("*.json"))
    assert sorted(path.name for path in tmp_path.glob("boards/*")) == [p.name for p in committed]
    for path in committed:
        board = json.loads((tmp_path / "boards" / path.name).read_text())
        [runbooks] = [v for v in board["templating"]["list"] if v["name"] == "runbooks"]
        assert runbooks["query"] == "https://docs.example.com/index.html"
        runbooks["query"] = RUNBOOKS.format("index")
        assert board == json.loads(path.read_text())


def all_queries(text: str) -> list[Query]:
    document = msgspec.convert(yaml.safe_load(text), Provisioning)
    return [query for group in document.groups for rule in group.rules for query in rule.data]


def test_a_place_for_pages_without_room_for_their_names_is_refused(
    capsys: pytest.CaptureFixture[str],
):
    with pytest.raises(SystemExit):
        main(["--runbooks", "https://docs.example.com/"])

    assert "expected a {} where the page's name goes" in capsys.readouterr().err


def test_a_name_that_is_too_long_for_grafana_is_refused():
    alert = msgspec.structs.replace(alerts()[0], alert="LoopguardSomethingThatHasFarTooLongAName")

    with pytest.raises(ValueError, match=f"expected at most {LONGEST_UID}"):
        grafana_alerts.rule(alert, [alert], [], "prometheus")
