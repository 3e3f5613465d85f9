"""A line of a steps file -> the same line sanitised: what is not read is left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Final, cast

from otel_loopguard.sanitising.texts import Texts
from otel_loopguard.sanitising.tokens import is_usage

_AS_THEY_ARE: Final = frozenset(
    (
        *("input_tokens", "output_tokens", "cache_read_tokens", "cost_usd", "dt_s", "gap_s"),
        *("advance_s", "ended", "approved_by_user", "success", "result_len"),
    )
)
"""Fields with numbers, and with yes or no."""
_TEXTS: Final = frozenset(
    (
        *("type", "name", "error", "finish_reason", "provider", "model", "agent", "parent"),
        *("run", "call_id", "batch", "contains", "run_id", "id", "label", "source"),
        *("arguments", "result", "policy"),
    )
)
_HASHES: Final = {"args_sha": "arguments", "result_sha": "result"}


def sanitised_run(data: object, texts: Texts) -> object:
    """Return a line, plain JSON data, with placeholders."""
    if not isinstance(data, dict):
        return None
    line = cast("dict[str, object]", data)
    steps = line.get("steps")
    rest = _fields({name: value for name, value in line.items() if name != "steps"}, texts)
    listed = cast("list[object]", steps) if isinstance(steps, list) else []
    return {**rest, "steps": [_step(step, texts) for step in listed]}


def _step(data: object, texts: Texts) -> object:
    if not isinstance(data, dict):
        return None
    step = cast("dict[str, object]", data)
    found = _fields(step, texts)
    calls = step.get("tool_calls")
    if isinstance(calls, list):
        found["tool_calls"] = [_fields(call, texts) for call in cast("list[object]", calls)]
    elif "tool_calls" in step:
        found["tool_calls"] = None
    for name, of in _HASHES.items():
        digest = step.get(name)
        # The hash of the whole value says nothing that the value does not: without it, it is whole.
        if isinstance(digest, str) and not _is_hash_of(digest, step.get(of)):
            found[name] = texts.replaced(digest)
    result, length = step.get("result"), step.get("result_len")
    if isinstance(result, str) and length == len(result):
        found["result_len"] = len(cast("str", found["result"]))
    return found


def _fields(data: object, texts: Texts) -> dict[str, object]:
    found: dict[str, object] = {}
    if isinstance(data, dict):
        for name, value in cast("dict[str, object]", data).items():
            if name in _AS_THEY_ARE:
                found[name] = value if isinstance(value, (int, float, bool)) else None
            elif name in _TEXTS:
                found[name] = plain(value, texts.replaced, texts.number, of_policy=name == "policy")
    return found


def plain(
    value: object,
    text: Callable[[str], str],
    number: Callable[[str], str],
    *,
    of_policy: bool = False,
    key: str = "",
) -> object:
    """Return plain JSON data with other texts, keys and numbers; those of a policy stay."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {
            text(name): plain(item, text, number, of_policy=of_policy, key=name)
            for name, item in members.items()
        }
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [plain(item, text, number, of_policy=of_policy) for item in items]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return value if of_policy or is_usage(key) else _other(value, number)


def _other(value: float, number: Callable[[str], str]) -> object:
    shown = repr(value)
    sign, told = ("-", shown[1:]) if shown.startswith("-") else ("", shown)
    return type(value)(sign + number(told)) if told[:1].isdigit() else value


def _is_hash_of(digest: str, value: object) -> bool:
    """Say whether a digest is that of a value, in either of the forms that are read."""
    compact = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    forms = (value, compact) if isinstance(value, str) else (compact,)
    return any(
        hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest().startswith(digest)
        for form in forms
    )
