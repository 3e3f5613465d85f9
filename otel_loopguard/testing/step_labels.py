"""One line for an agent, a model call or a tool call: fingerprints in place of contents."""

from __future__ import annotations

import hashlib
import re

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.steps import Step

_SHOWN = 60
_DIGITS = 6
_NAME_OF_ERROR = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def label_of(step: Step, *, contents: bool, is_open: bool = False) -> str:
    """Return the line; `contents` shows what was said, cut, in place of its fingerprint."""
    line = _line(step, contents=contents)
    return f"{line} (still open)" if is_open else line


def _line(step: Step, *, contents: bool) -> str:
    if step.kind == "tool":
        call = f"tool {step.name or '?'}({shown(step.arguments, contents=contents)})"
        return f"{call} {_outcome(step, step.result, contents=contents)}"
    if step.kind == "llm":
        model = f"model {step.model or step.name or '?'}"
        if step.error is not None:
            return f"{model} {_outcome(step, UNKNOWN, contents=contents)}"
        return f"{model} {_said(step, contents=contents)}".rstrip()
    return f"{step.kind} {step.name or step.agent or '?'}"


def _said(step: Step, *, contents: bool) -> str:
    calls = () if step.tool_calls is UNKNOWN else step.tool_calls
    if calls:
        asked = [f"{call.name}({shown(call.arguments, contents=contents)})" for call in calls]
        return f"asks for {', '.join(asked)}"
    if step.output is UNKNOWN:
        return f"({', '.join(step.finish_reasons)})" if step.finish_reasons else ""
    return f"answers {shown(step.output, contents=contents)}"


def _outcome(step: Step, result: object, *, contents: bool) -> str:
    if step.error is None:
        return f"= {shown(result, contents=contents)}"
    if contents:
        return f"failed: {_cut(step.error)}"
    name = _NAME_OF_ERROR.match(step.error)  # the rest of it may be anything
    return f"failed: {name[0] if name else '?'} {shown(step.error, contents=False)}"


def shown(value: object, *, contents: bool) -> str:
    """Return a value's fingerprint, the same for equal values; `?` where it is not known."""
    text = canonical(value)
    if text is UNKNOWN:
        return "?"
    if contents:
        return _cut(text.decode(errors="replace"))
    return f"#{hashlib.sha256(text).hexdigest()[:_DIGITS]}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
