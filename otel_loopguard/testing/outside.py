"""What scripted models and recording tools have seen of a run that made no spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from otel_loopguard.steps import Step
from otel_loopguard.testing.folding import folded
from otel_loopguard.testing.step_labels import label_of

_NOTHING = "no span of an agent, a model call or a tool call was seen, and no engine was asked"


def seen_from_outside(
    models: Sequence[tuple[object, int]],
    tools: Sequence[tuple[object, int]],
    *,
    contents: bool,
) -> str:
    """Return what they have counted, and the tools' latest executions with repetitions folded."""
    lines = [_NOTHING]
    lines += [f"├─ {_name_of(model)}: {calls:,} model calls" for model, calls in models]
    for tool, executions in tools:
        name = str(getattr(tool, "__name__", tool))
        latest = list(_latest(tool, name, contents=contents))[-executions:] if executions else []
        which = f", the latest {len(latest)}:" if latest else ""
        lines.append(f"├─ tool {name}: {executions:,} executions{which}")
        lines += [f"│  ├─ {line}" for line in folded(latest)]
    return "\n".join(lines)


def _name_of(model: object) -> str:
    """Return what a model calls itself; of one that does not, what it is."""
    is_plain = type(model).__repr__ is object.__repr__
    return type(model).__name__ if is_plain else repr(model)


def _latest(tool: object, name: str, *, contents: bool) -> Iterator[str]:
    calls: object = getattr(tool, "calls", ())
    for call in cast("Iterable[object]", calls) if isinstance(calls, tuple) else ():
        arguments: object = getattr(call, "arguments", {})
        step = Step(kind="tool", name=name, arguments=arguments)
        yield label_of(step, contents=contents).removesuffix(" = ?")
