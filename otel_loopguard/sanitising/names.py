"""Names that are kept in a sanitised recording: of tools, agents and models.

Taken is what an attribute or a field says, and what follows the operation in the name of a span.
The whole name of a span may be any sentence, and so may the name of a tool that a model asks for:
the one is no source, the other one only where the tool was offered, or has run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step

_NAME: Final = re.compile(r"(?=.{1,64}$)[A-Za-z][A-Za-z0-9_.:/-]*(?: [A-Za-z0-9_.:/-]+){0,3}")
"""At most four words."""
_MANY_DIGITS: Final = re.compile(r"(?:[^0-9]*[0-9]){9}")
"""Models have dates in their names; ids, numbers of people and keys have more digits."""
_MOST: Final = 1_000


def names_of(steps: Iterable[tuple[Step, SpanRecord | None]]) -> frozenset[str]:
    """Return the names in these steps that look like names, at most 1,000.

    Each comes with the span that it was read from, if that is where it comes from.
    """
    found: set[str] = set()
    for step, span in steps:
        for name in _names_in(step, span):
            if len(found) < _MOST and _NAME.fullmatch(name) and not _MANY_DIGITS.match(name):
                found.add(name)
    return frozenset(found)


def _names_in(step: Step, span: SpanRecord | None) -> Iterator[str]:
    for name in (step.name, step.agent, step.model):
        if span is None or not span.name.startswith(name) or name in span.attributes.values():
            yield name
    if step.offered_tools is not UNKNOWN:
        yield from sorted(step.offered_tools)
