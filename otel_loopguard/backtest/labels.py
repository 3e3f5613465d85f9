"""What readers say of runs: is it a loop?"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, cast

import msgspec

from otel_loopguard.backtest.outcomes import Outcome
from otel_loopguard.replay import RecordedRun, ReplayError
from otel_loopguard.replay.errors import shown
from otel_loopguard.replay.json_text import loads

Label: TypeAlias = Literal["loop", "weak", "no"]
"""`loop`: should have been stopped; `no`: should not; `weak`: unclear, left out of the count."""

_WORDS: Mapping[object, Label] = {"loop": "loop", "weak": "weak", "no": "no"}
_FIELDS = ("run_id", "label", "success")
_LONGEST = 40
_EXPECTED = '"loop", "weak", "no", true or false'


class LabelError(ValueError):
    """A file of labels that cannot be read; the text names the file and what was expected."""


class Said(msgspec.Struct, frozen=True):
    """What is said of one run; `None` is nothing."""

    label: Label | None = None
    success: bool | None = None


def label_of(value: object) -> Label | None:
    """Return the label that a value means (`true` a loop, `false` none); `None` if it is no label.

    Writing in capitals, and space around a word, do not matter.
    """
    if isinstance(value, bool):
        return "loop" if value else "no"
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None


def read_labels(
    path: str, *, on_unclear: Callable[[str], object] | None = None
) -> Mapping[str, Said]:
    """Read labels: a JSON object from run ids to labels, or a list of objects with a `run_id`.

    A value is a label, or an object with `label` and `success` (`true` or `false`), either of which
    may be missing. The list may stand under `labels` in an object. `on_unclear` is told of each
    entry that says nothing because of a field that is not known, or has one that is nearly known.
    Other fields of an entry are notes.

    Raises:
        LabelError: the file cannot be read; names it, the run and what was expected.

    """
    try:
        data = loads(Path(path).read_bytes())
        entries = _entries(data)
        said = {run_id: _said(run_id, value) for run_id, value in entries}
    except OSError as error:
        message = f"{path}: the labels cannot be read: {error.strerror or error}"
        raise LabelError(message) from None
    except (ReplayError, LabelError) as error:
        message = f"{path}: {error}"
        raise LabelError(message) from None
    if on_unclear is not None:
        for run_id, value in entries:
            for field in _slips(value):
                near = _near(field)
                meant = f"did you mean {near!r}?" if near else f"expected {', '.join(_FIELDS)}"
                on_unclear(f"{path}: run {run_id!r}: there is no field {field!r}; {meant}")
    return said


def _slips(value: object) -> list[str]:
    """Return the fields of an entry by which something may have been meant."""
    table = _table(value)
    unknown = [name for name in table if name not in _FIELDS]
    says = any(table.get(name) is not None for name in ("label", "success"))
    return [name for name in unknown if not says or _near(name)]


def _near(name: str) -> str | None:
    return next(iter(difflib.get_close_matches(name[:_LONGEST].lower(), _FIELDS, n=1)), None)


def unclear_in(recorded: RecordedRun) -> Iterator[str]:
    """Say which words of a steps file about a run are none of those that mean something."""
    yield from recorded.unclear
    word = recorded.label
    if isinstance(word, str) and word.strip() and label_of(word) is None:
        yield f"field 'label': expected {_EXPECTED}, got {shown(word)}"


def said_of(outcome: Outcome, labels: Mapping[str, Said]) -> Said:
    """Return what is said of a run; the file of labels goes before what its recording says."""
    own = Said(label_of(outcome.label), outcome.success)
    given = labels.get(outcome.run_id)
    if given is None:
        return own
    return Said(
        own.label if given.label is None else given.label,
        own.success if given.success is None else given.success,
    )


def _entries(data: object) -> list[tuple[str, object]]:
    table = _table(data)
    rows = table.get("labels", data)
    if isinstance(rows, list):
        return [_row(row, number) for number, row in enumerate(cast("list[object]", rows), 1)]
    if not isinstance(data, dict):
        message = f"expected an object from run ids to labels, or a list, got {shown(data)}"
        raise LabelError(message)
    return list(table.items())


def _table(data: object) -> Mapping[str, object]:
    return cast("dict[str, object]", data) if isinstance(data, dict) else {}


def _row(row: object, number: int) -> tuple[str, object]:
    run_id = _table(row).get("run_id")
    if not isinstance(run_id, (str, int)):
        message = f"label {number}: expected an object with a 'run_id', got {shown(row)}"
        raise LabelError(message)
    return str(run_id), row


def _said(run_id: str, value: object) -> Said:
    table: Mapping[str, object] = {"label": value}
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
    word, success = table.get("label"), table.get("success")
    label = label_of(word)
    if word is not None and label is None:
        message = f"run {run_id!r}: expected {_EXPECTED} as label, got {shown(word)}"
        raise LabelError(message)
    if success is not None and not isinstance(success, bool):
        message = f"run {run_id!r}: expected true or false as success, got {shown(success)}"
        raise LabelError(message)
    return Said(label, success)
