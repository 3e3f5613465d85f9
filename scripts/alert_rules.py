"""The alert rules for Prometheus, as they stand in `dashboards/alerting/rules`.

Rules speak of recorded ones by name. `inlined` puts those in, for where nothing is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec
import yaml

ALERTING = Path(__file__).resolve().parent.parent / "dashboards" / "alerting"
RULES = ALERTING / "rules"
RUNBOOKS = "docs/runbooks/{}.md"
"""Where the page of a name is, in the links of rules and boards as they are committed."""

_RECORDED = re.compile(r"\b[a-zA-Z_]\w*(?::\w+)+\b")
_COMMENT = re.compile(r"[ \t]+#.*$", re.MULTILINE)
_WORD = re.compile(r"[A-Z][a-z0-9]*")
_APART = ("scope", "mode", "window", "long", "limit", "severity")
"""Labels that tell apart the rules of one alert, the most telling first."""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that fires; an alert may have several."""

    alert: str
    expr: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    for_: str = msgspec.field(default="0s", name="for")

    @property
    def page(self) -> str:
        """What its runbook is called: LoopguardRunStuck is loopguard-run-stuck."""
        return "-".join(_WORD.findall(self.alert)).lower()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A rule whose result other rules ask for by name."""

    record: str
    expr: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a topic: a file."""

    name: str
    interval: str
    rules: Sequence[Mapping[str, object]]

    @property
    def alerts(self) -> Sequence[Alert]:
        return [msgspec.convert(rule, Alert) for rule in self.rules if "alert" in rule]

    @property
    def records(self) -> Sequence[Record]:
        return [msgspec.convert(rule, Record) for rule in self.rules if "record" in rule]


def page_of(name: str, runbooks: str = RUNBOOKS) -> str:
    """Where a page is, the whole list of them under the name `index`."""
    return runbooks.replace("{}", name)


def groups(texts: Sequence[str] | None = None) -> Sequence[Group]:
    """The groups of rules of these texts; of all files if none are given."""
    chosen = [path.read_text() for path in sorted(RULES.glob("*.yaml"))] if texts is None else texts
    return [group for text in chosen for group in _groups(text)]


def alerts(of: Sequence[Group] | None = None) -> Sequence[Alert]:
    """Every rule that fires."""
    return [alert for group in (groups() if of is None else of) for alert in group.alerts]


def _groups(text: str) -> Iterator[Group]:
    document = cast("Mapping[str, object]", yaml.safe_load(text))
    yield from msgspec.convert(document["groups"], list[Group])


def inlined(expr: str, records: Sequence[Record]) -> str:
    """The expression without comments, and with the expression of each recorded rule in its place.

    Raises:
        KeyError: it names a recorded rule that is not among these.

    """
    by_name = {record.record: record.expr for record in records}

    def place(match: re.Match[str]) -> str:
        return f"(\n{inlined(by_name[match[0]], records)}\n)"

    return _RECORDED.sub(place, _COMMENT.sub("", expr).strip())


def apart(alert: Alert, among: Sequence[Alert]) -> str:
    """What tells a rule from the others of its alert, in a word; empty if it has no others."""
    others = [each for each in among if each.alert == alert.alert]
    if len(others) == 1:
        return ""
    return next(alert.labels[label] for label in _APART if label in alert.labels)
