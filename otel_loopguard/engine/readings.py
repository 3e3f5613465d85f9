"""What a step says to the rules: identities of arguments, results, errors and model turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from otel_loopguard.canonical import UNKNOWN, Unknown, canonical, fingerprint
from otel_loopguard.detectors import Turn
from otel_loopguard.endings import asks_for_tools, ending_of
from otel_loopguard.engine.memory import KEPT
from otel_loopguard.settings import ToolOptions
from otel_loopguard.steps import Step
from otel_loopguard.values.failures import error_signature

UNREADABLE = (b'"{', b'"[')
"""How the canonical text of arguments begins that were to be JSON, and are not."""


Identity: TypeAlias = tuple["int | None", "int | None", "bytes | None"]
"""What tells one tool call from another, `None` while the arguments are unknown.

That is the identity of agent, tool and arguments; the fingerprint of all arguments, ignored ones
included; and the canonical text of those that count, where it is not long.
"""

NOBODY: Identity = (None, None, None)
"""The identity of what is no call, or is not to be compared."""


def identify(step: Step, options: ToolOptions | None, who: str) -> Identity:
    """Return what tells this call from others; `who` calls."""
    text = canonical(step.arguments)
    if text is UNKNOWN:
        return NOBODY
    given = counted = hash(text)
    if options is not None and options.ignore_arguments:
        ignored = options.ignore_arguments
        text = b"{}" if ignored is True else _without(text, ignored or ())
        if text is UNKNOWN:  # pragma: no cover -- what has been read can be written
            return NOBODY
        counted = hash(text)
    call = hash((who, step.name, counted))
    return call, given, text if len(text) <= KEPT else None


def _without(text: bytes, ignored: tuple[str, ...]) -> bytes | Unknown:
    """Return the canonical text of an object without some members; any other text as it is."""
    try:
        members = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return text
    return canonical({name: member for name, member in members.items() if name not in ignored})


def signature_of(error: str) -> int:
    """Return the identity of an error."""
    return hash(error_signature(error))


def turn_of(step: Step) -> Turn | None:
    """Return what a model turn brought; `None` if the call failed."""
    if step.error is not None:
        return None
    ending = ending_of(step)
    return Turn(
        output=_output_of(step),
        cut=ending == "truncated",
        final=ending == "complete" and isinstance(step.output, str),
        asks=asks_for_tools(step),
    )


def _output_of(step: Step) -> int | None:
    """Return the identity of text and requested calls.

    Text alone is enough if there is some, or if the turn asked for nothing; calls alone are enough
    if there are some. Empty text beside calls that nobody recorded says nothing.
    """
    calls = _calls_of(step)
    if step.output is UNKNOWN:
        return hash(calls) if calls else None
    if calls is None and asks_for_tools(step) and not step.output.strip():
        return None
    return hash((step.output.strip(), calls))


def _calls_of(step: Step) -> tuple[tuple[str, int], ...] | None:
    if step.tool_calls is UNKNOWN:
        return None
    prints = [(call.name, fingerprint(call.arguments)) for call in step.tool_calls]
    known = tuple((name, value) for name, value in prints if value is not None)
    return known if len(known) == len(prints) else None


def state_after(state_of: Callable[[Step], object], step: Step) -> int | None:
    """Return the identity of the state that an application says there is; `None` if it fails."""
    try:
        return fingerprint(state_of(step))
    except Exception:  # noqa: BLE001 -- a foreign callable may do anything
        return None
