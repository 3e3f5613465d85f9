"""Hand-written loops over the `anthropic` client, and its tool runner.

The tools of `tool_runner` are asked about before they are called: `call` of what `beta_tool` and
`beta_async_tool` make is wrapped. One that is refused answers with an error result that says why.
A hand-written loop asks for itself; the model gate refuses the requests of both.

    with anthropic.calling(block.name, block.input, block.id) as asked:
        asked.result = str(asked.refusal) if asked.refusal else search(**block.input)

The caller of a stopped run gets `RunAborted` out of the client's method, or out of the runner. A
loop has its history; a runner tells it: `runner.set_messages_params` hands it the `messages`. Where
the stop came between the calls of a turn, `answered` gives the others an answer, so that the next
request is a valid one.

Not reached: tools that the provider runs, the SDK's own tool classes, and tool calls that a loop
does not ask about: these are known from the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.integrations._history import NOT_MADE, part_of
from otel_loopguard.integrations._integration import Integration, ToolCalling
from otel_loopguard.processor import LoopGuardSpanProcessor

Refusing: TypeAlias = Callable[[str], Exception]
"""Makes the error with which a tool answers."""


def install(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard before every tool call of a runner, and let loops ask it, from now on."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Ask this guard no more; with the last one gone, put the client back as it was."""
    INTEGRATION.uninstall(guard)


def calling(name: str, arguments: object = UNKNOWN, call_id: str | None = None) -> ToolCalling:
    """Return a block for a tool call that a loop is about to make, unless it has a `refusal`.

    Args:
        name: the tool's.
        arguments: the `input` of the model's block.
        call_id: the `id` of that block.

    """
    return INTEGRATION.calling(name, arguments, call_id)


def hint() -> str | None:
    """Return what the model is to be told with the next request, as a user's message, if anything.

    It is returned once, and says nothing unless `steer` is on.
    """
    return INTEGRATION.hint()


def answered(history: Iterable[Any], reason: str = NOT_MADE) -> list[Any]:
    """Return a history in which every tool call has an answer.

    Args:
        history: messages, as mappings or as the client's objects.
        reason: the answer to the calls that have none.

    """
    whole: list[Any] = []
    open_calls: list[str] = []
    for message in history:
        given = [part_of(block, "tool_use_id") for block in _blocks(message, "tool_result")]
        left = _results((each for each in open_calls if each not in given), reason)
        if left and part_of(message, "role") == "user":
            # The results of a turn stand first in one message, right after it.
            content = part_of(message, "content")
            said = [{"type": "text", "text": content}] if isinstance(content, str) else content
            whole.append({"role": "user", "content": [*left, *said]})
        else:
            whole += [{"role": "user", "content": left}] if left else []
            whole.append(message)
        open_calls = [str(part_of(block, "id")) for block in _blocks(message, "tool_use")]
    left = _results(open_calls, reason)
    return [*whole, {"role": "user", "content": left}] if left else whole


def _results(call_ids: Iterable[str], reason: str) -> list[dict[str, object]]:
    return [
        {"type": "tool_result", "tool_use_id": each, "content": reason, "is_error": True}
        for each in call_ids
    ]


def _blocks(message: object, kind: str) -> Iterator[object]:
    content = part_of(message, "content")
    if not isinstance(content, str):
        yield from (block for block in content or () if part_of(block, "type") == kind)


def _call(
    refused: Refusing, wrapped: Wrapped, tool: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> object:
    with INTEGRATION.calling(tool.name, _input(*args, **kwargs)) as call:
        if call.refusal is not None:
            raise refused(str(call.refusal))
        call.result = wrapped(*args, **kwargs)
        return call.result


async def _awaited_call(
    refused: Refusing, wrapped: Wrapped, tool: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> object:
    with INTEGRATION.calling(tool.name, _input(*args, **kwargs)) as call:
        if call.refusal is not None:
            raise refused(str(call.refusal))
        call.result = await wrapped(*args, **kwargs)
        return call.result


def _input(input: object = UNKNOWN, *_: object, **__: object) -> object:  # noqa: A002 -- the SDK's
    return input


def _tools(module: ModuleType) -> Iterator[Entry]:
    refused: Refusing | None = getattr(module, "ToolError", None)
    if refused is not None:  # before there was one, a tool could not fail with a text of its own
        yield Entry(module.BetaFunctionTool, "call", partial(_call, refused))
        yield Entry(module.BetaAsyncFunctionTool, "call", partial(_awaited_call, refused))


INTEGRATION = Integration("the anthropic client", {"anthropic.lib.tools": _tools})
