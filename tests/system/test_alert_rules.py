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

TOPICS = sorted(path.stem for path in RULES.glob("*.yaml"))
RUNBOOKS = ALERTING.parent.parent / "docs" / "runbooks"
BY_TOPIC = pytest.mark.parametrize("topic", TOPICS)


@pytest.fixture(scope="session")
def promtool() -> Path:
    return programs("promtool")["promtool"]


def run(program: Path, *arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def copy(to: Path, topic: str) -> tuple[Path, Path]:
    """The rules and the tests of a topic, laid as they are in the project."""
    copies: list[Path] = []
    for part in ("rules", "tests"):
        (to / part).mkdir()
        copies.append(Path(shutil.copy(ALERTING / part / f"{topic}.yaml", to / part)))
    return copies[0], copies[1]


@BY_TOPIC
def test_the_rules_are_right(promtool: Path, topic: str):
    code, said = run(promtool, "check", "rules", RULES / f"{topic}.yaml")

    assert (code, "SUCCESS" in said) == (0, True), said


@BY_TOPIC
def test_they_fire_when_they_should_and_only_then(promtool: Path, topic: str):
    code, said = run(promtool, "test", "rules", ALERTING / "tests" / f"{topic}.yaml")

    assert code == 0, said


@BY_TOPIC
def test_grafanas_queries_do_so_too_without_recorded_rules(
    promtool: Path, topic: str, tmp_path: Path
):
    rules, tests = copy(tmp_path, topic)
    document = yaml.safe_load(rules.read_text())
    records = [record for group in groups() for record in group.records]
    for group in document["groups"]:
        group["rules"] = [
            {**rule, "expr": inlined(rule["expr"], records)}
            for rule in group["rules"]
            if "alert" in rule
        ]
    rules.write_text(json.dumps(document))

    code, said = run(promtool, "test", "rules", tests)

    assert (code, ":increase" in rules.read_text()) == (0, False), said


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
