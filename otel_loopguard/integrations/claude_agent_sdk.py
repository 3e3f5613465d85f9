"""Claude Agent SDK: a stopped run's CLI is told to stop, by hooks of its own.

The model is asked by the CLI, another process, which asks its hooks here: `UserPromptSubmit`,
`SubagentStart` and `PostToolBatch` before it asks the model, `PreToolUse`, `PostToolUse` and
`PostToolUseFailure` around each tool call. Ours are put beside those in the options of every
`query()` and `ClaudeSDKClient`, and are all that the guard sees: what they tell of is a run, from a
prompt to its `ResultMessage`, unless the calling code is in one already.

The caller gets that message, with `terminal_reason="hook_stopped"`, and then `ClaudeRunAborted` out
of `query()` and `receive_response()`. `receive_messages()` goes on, for it is not over with a turn.
The session has the results of all tools: send the client another prompt, or `resume` the session.

A tool call that is refused is denied as a hook would deny it, and the model is told the reason.

Not reached: what no hook tells of, such as the tokens of a model call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from claude_agent_sdk import ResultMessage

from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.integrations._claude_turns import ClaudeRunAborted, Turns
from otel_loopguard.integrations._integration import Integration

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


async def _process_query(
    wrapped: Wrapped, _client: object, args: Arguments, kwargs: Keywords
) -> AsyncIterator[object]:
    turns, session_id = Turns(INTEGRATION), ""
    options = turns.options(kwargs.get("options"))
    try:
        async for message in wrapped(*args, **{**kwargs, "options": options}):
            session_id = getattr(message, "session_id", None) or session_id
            yield message
    finally:
        turns.over()
    if stop := turns.stop(session_id):
        raise stop


async def _connect(wrapped: Wrapped, client: Any, args: Arguments, kwargs: Keywords) -> object:
    turns = _turns[client] = Turns(INTEGRATION)
    options = client.options
    client.options = turns.options(options)
    try:
        return await wrapped(*args, **kwargs)
    finally:
        client.options = options


async def _query(wrapped: Wrapped, client: Any, args: Arguments, kwargs: Keywords) -> object:
    if client in _turns:
        _turns[client].look()
    return await wrapped(*args, **kwargs)


async def _messages(
    wrapped: Wrapped, client: Any, args: Arguments, kwargs: Keywords
) -> AsyncIterator[object]:
    turns = _turns.get(client) or Turns(INTEGRATION)
    turns.look()
    async for message in wrapped(*args, **kwargs):
        if isinstance(message, ResultMessage):
            turns.over()
        yield message
        turns.look()


async def _response(
    wrapped: Wrapped, client: Any, args: Arguments, kwargs: Keywords
) -> AsyncIterator[object]:
    session_id = ""
    async for message in wrapped(*args, **kwargs):
        session_id = getattr(message, "session_id", None) or session_id
        yield message
    if client in _turns and (stop := _turns[client].stop(session_id)):
        raise stop


def _clients(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.ClaudeSDKClient, "connect", _connect)
    yield Entry(module.ClaudeSDKClient, "query", _query)
    yield Entry(module.ClaudeSDKClient, "receive_messages", _messages)
    yield Entry(module.ClaudeSDKClient, "receive_response", _response)


def _queries(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.InternalClient, "process_query", _process_query)


_turns: WeakKeyDictionary[object, Turns] = WeakKeyDictionary()
"""Those of each client that is connected."""

INTEGRATION = Integration(
    "Claude Agent SDK",
    {"claude_agent_sdk.client": _clients, "claude_agent_sdk._internal.client": _queries},
)
install = INTEGRATION.install
uninstall = INTEGRATION.uninstall

__all__ = ["INTEGRATION", "ClaudeRunAborted", "install", "uninstall"]
