"""Steps files: JSON lines, one run a line -> `RecordedRun`.

A line is `{"run_id"?, "id"?, "policy"?, "steps": [...]}`. Fields that are not read here are
ignored. `null` or missing arguments and results were not recorded; `""` and `{}` are empty ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown
from otel_loopguard.replay.errors import FieldError, ReplayError, path_text, shown
from otel_loopguard.replay.json_text import Reader
from otel_loopguard.replay.steps_line import Entry, Label, Line
from otel_loopguard.replay.timeline import Duration, Moment, laid_out
from otel_loopguard.steps import SpanKey, Step, ToolCall

_KINDS = "'tool', 'llm', 'agent', 'custom' or 'user'"
_HASH_LETTERS = str.maketrans("0123456789abcdefABCDEF", "ghijklmnopqrstuvqrstuv")


class RecordedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `steps`."""

    index: int
    """Its place in `steps`, from 1."""
    run: str | None
    """The invocation it belongs to: where that changes, a new run begins. `None` is not said."""
    step: Step | None
    """`None` for a user turn. `ended_s` is `None` for a step that never ends."""


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a steps file."""

    run_id: str
    policy: Mapping[str, object]
    """Overrides on the policy in force, as in `loopguard.toml`."""
    steps: tuple[RecordedStep, ...]
    moments: tuple[Moment, ...]
    """Starts and ends of the steps on the virtual time line; `position` counts `steps` from 0."""
    until_s: float = 0.0
    """When the recorded time is over, in seconds from its start."""
    success: bool | None = None
    """Whether the run did what it was for; `None` where nobody says."""
    label: str | bool | None = None
    """What a reader of the run said of it."""
    origin: str = ""
    """Where the run comes from: the line's `source`."""
    agent: str = ""
    """The agent whose run it is: the line's, else that of the first step that names one."""
    model: str = ""
    unclear: tuple[str, ...] = ()
    """What `success` and `label` say that is none of what they can say."""


_lines = Reader(Line)


def read_run(line: bytes | str, *, number: int = 1) -> RecordedRun:
    """Return the run of one line; `number` is the line's, and names a run that has no id.

    Raises:
        ReplayError: names the step (from 1), the field, and what was expected.

    """
    try:
        entries = _lines.read(line)
    except FieldError as error:
        raise _placed(error) from error
    run_id = entries.run_id if entries.run_id is not None else entries.id
    placed, until_s = laid_out([_duration(entry) for entry in entries.steps])
    starts = {moment.position: moment.at_s for moment in placed if not moment.is_end}
    ends = {moment.position: moment.at_s for moment in placed if moment.is_end}
    counted = any(e.input_tokens or e.output_tokens for e in entries.steps if e.type == "llm")
    steps = [
        RecordedStep(
            index=position + 1,
            run=None if entry.run is None else str(entry.run),
            step=_step(entry, position + 1, starts[position], ends.get(position), counted=counted),
        )
        for position, entry in enumerate(entries.steps)
    ]
    named = (entry.agent for entry in entries.steps if entry.agent is not None)
    return RecordedRun(
        run_id=f"line-{number}" if run_id is None else _text(run_id),
        policy=entries.policy or {},
        steps=tuple(steps),
        moments=tuple(placed),
        until_s=until_s,
        success=entries.success if isinstance(entries.success, bool) else None,
        label=entries.label if isinstance(entries.label, (str, bool)) else None,
        origin=entries.source if isinstance(entries.source, str) else "",
        agent=entries.agent if isinstance(entries.agent, str) else _text(next(named, None)),
        model=entries.model if isinstance(entries.model, str) else "",
        unclear=tuple(_unclear(entries)),
    )


def _unclear(line: Line) -> Iterator[str]:
    """Say which of the words about a run are none; an object or a list is meant for others."""
    if isinstance(line.success, (str, int, float)) and not isinstance(line.success, bool):
        yield f"field 'success': expected true, false or null, got {shown(line.success)}"
    if isinstance(line.label, (int, float)) and not isinstance(line.label, bool):
        yield f"field 'label': expected a word, true, false or null, got {shown(line.label)}"


def _step(
    entry: Entry, index: int, started_s: float, ended_s: float | None, *, counted: bool
) -> Step | None:
    if entry.type == "user":
        return None
    if entry.type == "tool" and entry.name is None:
        raise ReplayError(_place(index, "name", "the name of the tool", "nothing"))
    result = _whole(entry.result, entry.result_sha, entry.result_len)
    # An agent's usage is the sum of what is below it: it counts only where that was not recorded.
    summed = entry.type == "agent" and counted
    return Step(
        kind=entry.type,
        name=entry.name or "",
        arguments=_whole(entry.arguments, entry.args_sha),
        result=UNKNOWN if entry.type == "llm" else result,
        error=_error(entry),
        call_id=None if entry.call_id is None else str(entry.call_id),
        agent=_text(entry.agent),
        agent_id=None if entry.agent is None else str(entry.agent),
        agent_parent_id=None if entry.parent is None else str(entry.parent),
        finish_reasons=(entry.finish_reason,) if entry.finish_reason else (),
        input_tokens=None if summed else entry.input_tokens,
        output_tokens=None if summed else entry.output_tokens,
        cache_read_tokens=None if summed else entry.cache_read_tokens,
        cost_usd=None if summed else entry.cost_usd,
        tool_calls=_calls(entry),
        output=_output(result) if entry.type == "llm" else UNKNOWN,
        batch=None if entry.batch is None else str(entry.batch),
        approved=entry.approved_by_user is True,
        provider=entry.provider or "",
        model=entry.model if isinstance(entry.model, str) else "",
        started_s=started_s,
        ended_s=ended_s,
        span=SpanKey(0, index),
    )


def _duration(entry: Entry) -> Duration:
    agents = entry.contains if isinstance(entry.contains, list) else ()
    return Duration(
        dt_s=entry.dt_s or 0.0,
        gap_s=entry.gap_s or 0.0,
        advance_s=entry.advance_s or 0.0,
        batch=None if entry.batch is None else str(entry.batch),
        agent=_text(entry.agent),
        contains=frozenset(map(_text, agents)),
        whole=entry.contains == "all",
        ended=entry.ended is not False,
    )


def _whole(value: object, digest: str | None, length: object = None) -> object:
    """Return a value, or what stands for it where it was cut.

    It is whole if it is a text of the length that the whole has, in characters, or if the hash is
    its own: SHA-256 in hex (possibly shortened) of the text, or of compact JSON with sorted keys.
    With any other hash the value is taken as cut: equal hashes then are equal values.
    """
    if not digest:
        return UNKNOWN if value is None else value
    if isinstance(value, str) and len(value) == length:
        return value
    if value is not None and any(
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest().startswith(digest)
        for text in _texts(value)
    ):
        return value
    # Letters beyond f: the masks for volatile parts (digits, hex, UUIDs) must not touch a hash.
    return f"sha:{digest.translate(_HASH_LETTERS)}"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    yield json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _error(entry: Entry) -> str | None:
    """Return what went wrong: the error's text, or the result's where the error is just `true`."""
    if entry.error is None or entry.error is False or entry.error == "":
        return None
    if isinstance(entry.error, str):
        return entry.error
    text = _output(UNKNOWN if entry.result is None else entry.result)
    return text if isinstance(text, str) and text else "error"


def _calls(entry: Entry) -> tuple[ToolCall, ...] | Unknown:
    if entry.tool_calls is None:
        return UNKNOWN
    return tuple(
        ToolCall(
            name=call.name,
            arguments=UNKNOWN if call.arguments is None else call.arguments,
            call_id=_text(call.call_id if call.call_id is not None else call.id) or None,
        )
        for call in entry.tool_calls
    )


def _output(value: object) -> str | Unknown:
    if value is UNKNOWN or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _text(label: Label) -> str:
    return "" if label is None else str(label)


def _placed(error: FieldError) -> ReplayError:
    """Say where in `steps` the field is, counting steps as the output does."""
    match error.path:
        case ("steps", int(position)):
            message = f"step {position + 1}: expected {error.expected}, got {error.found}"
            return ReplayError(message)
        case ("steps", int(position), *field):
            expected = _KINDS if field == ["type"] else error.expected
            return ReplayError(_place(position + 1, path_text(field), expected, error.found))
        case _:
            return error


def _place(index: int, field: str, expected: str, found: str) -> str:
    return f"step {index}, field {field!r}: expected {expected}, got {found}"
