"""What is in a dashboard's JSON: panels, queries, annotations, variables, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Document: TypeAlias = Mapping[str, Any]
"""A dashboard, or a part of one, as JSON has it."""

DIRECTORY = Path(__file__).resolve().parent.parent
NOT_RUN = "not run"
"""In the title of a board whose queries nobody has executed."""


class Query(NamedTuple):
    """A query in PromQL, and where it stands."""

    place: str
    expression: str
    instant: bool = False
    exemplars: bool = False
    legend: str = ""


def boards() -> dict[str, Document]:
    """Every dashboard of the project, by the name of its file."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(DIRECTORY.glob("*.json"))}


def panels(board: Document) -> Iterator[Document]:
    yield from board["panels"]


def queries(board: Document) -> Iterator[Query]:
    """What the panels and annotations of a board ask Prometheus for."""
    for panel in panels(board):
        for target in panel.get("targets", ()):
            if "expr" in target:
                yield Query(
                    f"{panel['title']} [{target['refId']}]",
                    target["expr"],
                    bool(target.get("instant")),
                    bool(target.get("exemplar")),
                    target.get("legendFormat", ""),
                )
    for note in board["annotations"]["list"]:
        if "expr" in note.get("target", {}):
            yield Query(f"annotation {note['name']}", note["target"]["expr"])


def variables(board: Document) -> Iterator[Document]:
    yield from board["templating"]["list"]
