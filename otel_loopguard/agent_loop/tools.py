"""Tools that a model may call, and what is said of calls that are not made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

import msgspec

from otel_loopguard.agent_loop.awaited import accepts, is_awaited
from otel_loopguard.agent_loop.schema import problem_in
from otel_loopguard.agent_loop.unjudged import refuse_unjudged
from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.options.errors import wrong

_LABEL = 64
"""Characters of a name that there is not; providers take no longer ones."""
_JSON = msgspec.json.Decoder(object)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that a model may call by its name.

    Raises:
        PolicyError: for a name, function or schema that is none.

    """

    name: str
    call: Callable[..., object]
    """Called with the arguments by name. With `run_agent_async` it may return an awaitable."""
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """JSON Schema of the arguments: shown to the model, and held against each call."""
    check: Callable[[dict[str, Any]], object] | None = None
    """Given the arguments before they are used: raises, or answers False, to refuse them. What else
    it returns is not looked at. `lambda given: msgspec.convert(given, Search)` is one."""
    finish: bool = False
    """Calling it ends the run; what it returns is the result."""

    def __post_init__(self) -> None:
        """Refuse what could not be called, or not be judged."""
        name, call, check = cast("tuple[object, ...]", (self.name, self.call, self.check))
        if not isinstance(name, str) or not name:
            raise wrong("Tool.name", "a name", name)
        if not callable(call):
            raise wrong(f"Tool({name!r}).call", "a callable", call)
        if check is not None and (not callable(check) or is_awaited(check)):
            raise wrong(f"Tool({name!r}).check", "a callable or None, none that is awaited", check)
        if self.parameters is not None:
            refuse_unjudged(self.parameters, f"Tool({name!r}).parameters")

    def accepted(self, given: object) -> dict[str, Any]:
        """Return the arguments of a call to call it with.

        Raises:
            InvalidArgumentsError: if they are not what the tool takes.

        """
        arguments = _object_in(given)
        problem = problem_in(arguments, self.parameters or {}, "arguments")
        if problem is not None:
            raise InvalidArgumentsError(problem)
        if self.check is not None:
            try:
                accepted = accepts(self.check, arguments, "check")
            except Exception as error:
                raise InvalidArgumentsError(f"arguments: {error}") from error
            if not accepted:
                raise InvalidArgumentsError("arguments: not what this tool takes")
        return arguments


class NotCalledError(Exception):
    """A call was not made: the loop says so, no tool."""


class InvalidArgumentsError(NotCalledError):
    """A model's call has arguments that the tool does not take."""


class UnknownToolError(NotCalledError):
    """A model has called a tool that there is not."""


def label_of(name: str, tools: Mapping[str, Tool]) -> str:
    """Return what spans and reports call a tool: by a name that a model has made up, cut."""
    return name if name in tools else name[:_LABEL]


def _object_in(given: object) -> dict[str, Any]:
    """Return the arguments as a model gave them: a mapping, JSON text of one, or nothing at all."""
    if given is UNKNOWN or given is None or given == "":
        return {}
    try:
        value = _JSON.decode(given) if isinstance(given, (str, bytes)) else given
    except (msgspec.DecodeError, ValueError) as error:  # the first is no second in older ones
        raise InvalidArgumentsError(f"arguments: expected a JSON object ({error})") from None
    if not isinstance(value, Mapping):
        raise InvalidArgumentsError(f"arguments: expected a JSON object, got {value!r}")
    # A tool may change what it is called with: the conversation stays as it was.
    return deepcopy(dict(cast("Mapping[str, Any]", value)))
