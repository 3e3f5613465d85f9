"""The alert rules, as Prometheus's own tool reads them, and plays them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from scripts.alert_rules import ALERTING, RULES, groups, inlined
from scripts.debian_packages import programs

TESTS = ALERTING / "tests"
TOPICS = sorted(path.stem for path in RULES.glob("*.yaml"))
RUNBOOKS = ALERTING.parent.parent / "docs" / "runbooks"
BY_TOPIC = pytest.mark.parametrize("topic", TOPICS)
BY_TEST = pytest.mark.parametrize("test", sorted(path.stem for path in TESTS.glob("*.yaml")))


@pytest.fixture(scope="session")
def promtool() -> Path:
    return programs("promtool")["promtool"]


def run(program: Path, *arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


@BY_TOPIC
def test_the_rules_are_right(promtool: Path, topic: str):
    code, said = run(promtool, "check", "rules", RULES / f"{topic}.yaml")

    assert (code, "SUCCESS" in said) == (0, True), said


@BY_TEST
def test_they_fire_when_they_should_and_only_then(promtool: Path, test: str):
    code, said = run(promtool, "test", "rules", TESTS / f"{test}.yaml")

    assert code == 0, said


@BY_TEST
def test_grafanas_queries_do_so_too_without_recorded_rules(
    promtool: Path, test: str, tmp_path: Path
):
    records = [record for group in groups() for record in group.records]
    for part in ("rules", "tests"):
        (tmp_path / part).mkdir()
    for file in RULES.glob("*.yaml"):
        document = yaml.safe_load(file.read_text())
        for group in document["groups"]:
            group["rules"] = [
                {**rule, "expr": inlined(rule["expr"], records)}
                for rule in group["rules"]
                if "alert" in rule
            ]
        assert not any(record.record in json.dumps(document) for record in records)
        (tmp_path / "rules" / file.name).write_text(json.dumps(document))

    code, said = run(
        promtool, "test", "rules", shutil.copy(TESTS / f"{test}.yaml", tmp_path / "tests")
    )

    assert code == 0, said


def test_the_queries_of_the_runbooks_can_be_asked(promtool: Path, tmp_path: Path):
    block = re.compile(r"^ *```text\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    texts = [
        text for page in sorted(RUNBOOKS.glob("*.md")) for text in block.findall(page.read_text())
    ]
    # A line each; one that begins with an operator goes on with the query before.
    queries = [
        query
        for text in texts
        for query in re.split(r"\n(?!\s*/)", "\n".join(map(str.strip, text.splitlines())))
        if query.strip()
    ]
    rules = [{"record": f"query:{n}", "expr": query} for n, query in enumerate(queries)]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "runbooks", "rules": rules}]}))

    code, said = run(promtool, "check", "rules", file)

    assert (code, len(queries) > len(TOPICS)) == (0, True), said
