"""What can be told of a PromQL expression from its text: selectors, windows, labels.

Prometheus itself is the judge of syntax; this finds names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

GROWTH = ("rate", "increase", "min_over_time", "last_over_time")
"""Functions that take a counter; the last two only together with `increase`, see `grew`."""
_SELECTOR = re.compile(r"(\w*)\{([^{}]*)\}(?:\[([^\]]+)\])?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
_CALL = re.compile(r"(\w+)\($")
_BY = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_BARE = re.compile(r"\b(loopguard_\w+)\b(?!\s*[{\w]|\s*(?:=~|!~|!=|=))")


class Selector(NamedTuple):
    """Series of a metric that are asked for."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]
    window: str
    inside: str
    """The function whose only argument it is."""


def selectors(expression: str) -> Iterator[Selector]:
    for found in _SELECTOR.finditer(expression):
        call = _CALL.search(expression[: found.start()])
        yield Selector(
            found[1],
            tuple(_MATCHER.findall(found[2])),
            found[3] or "",
            call[1] if call else "",
        )


def grouped(expression: str) -> set[str]:
    """The labels that it is summed by."""
    return {
        label.strip()
        for found in _BY.finditer(expression)
        for label in found[1].split(",")
        if label.strip()
    }


def without_braces(expression: str) -> set[str]:
    """Metrics that stand there without `{...}`, and so without the variables' choice."""
    outside = _BY.sub("", _SELECTOR.sub(" ", expression))
    return set(_BARE.findall(outside))


def used_variables(text: str) -> set[str]:
    """Grafana's variables in a text, its own (`$__range`) left out."""
    found = re.findall(r"\$(?:\{(\w+)(?:[.:][^}]*)?\}|(\w+))", text)
    return {name for pair in found for name in pair if name and not name.startswith("__")}
