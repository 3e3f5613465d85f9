"""Hand-written loops over the `openai` client, over Chat Completions or over Responses.

Nothing is wrapped here: a loop asks for itself before it makes a tool call, and the model gate
refuses its model requests.

    with openai.calling(call.name, call.arguments, call.call_id) as asked:
        asked.result = str(asked.refusal) if asked.refusal else search(**arguments)

The caller of a stopped run gets `RunAborted` out of the client's method, and has the history. Where
the stop came between the calls of a turn, `answered` gives the others an answer, so that the next
request is a valid one. A refused tool call is answered with the reason.

Not reached: tools that the provider runs, and tool calls that the loop does not ask about: these
are known from the next request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.integrations._history import NOT_MADE, part_of
from otel_loopguard.integrations._integration import Integration, ToolCalling
from otel_loopguard.processor import LoopGuardSpanProcessor


def install(guard: LoopGuardSpanProcessor) -> None:
    """Let loops ask this guard from now on."""
    INTEGRATION.install(guard)


def uninstall(guard: LoopGuardSpanProcessor) -> None:
    """Let them ask this guard no more."""
    INTEGRATION.uninstall(guard)


def calling(name: str, arguments: object = UNKNOWN, call_id: str | None = None) -> ToolCalling:
    """Return a block for a tool call that the loop is about to make, unless it has a `refusal`.

    Args:
        name: the tool's.
        arguments: as the model has written them, or as objects.
        call_id: the `id` of the call in a chat, its `call_id` in a response.

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
        history: messages of a chat, or input and output items of responses, as mappings or as the
            client's objects.
        reason: the answer to the calls that have none.

    """
    whole: list[Any] = []
    open_calls: dict[str, dict[str, str]] = {}
    for item in history:
        done = part_of(item, "tool_call_id") or part_of(item, "call_id")
        if part_of(item, "role") not in (None, "tool"):
            whole += open_calls.values()
            open_calls = {}
        open_calls.pop(str(done), None)
        open_calls |= _asked(item, reason)
        whole.append(item)
    return [*whole, *open_calls.values()]


def _asked(item: object, reason: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the calls that an item asks for, each with the answer that it gets if it has none."""
    for call in part_of(item, "tool_calls") or ():
        call_id = str(part_of(call, "id"))
        yield call_id, {"role": "tool", "tool_call_id": call_id, "content": reason}
    if part_of(item, "type") == "function_call":
        call_id = str(part_of(item, "call_id"))
        yield call_id, {"type": "function_call_output", "call_id": call_id, "output": reason}


INTEGRATION = Integration("the openai client")
