"""What the loop wants done, and what came of it: calls that are attempted once each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TypeAlias

import msgspec

from otel_loopguard.agent_loop.messages import TurnRequest, described
from otel_loopguard.agent_loop.tools import (
    InvalidArgumentsError,
    NotCalledError,
    Tool,
    UnknownToolError,
    label_of,
)
from otel_loopguard.agent_loop.turns import turn_in
from otel_loopguard.steps import ToolCall


class ModelAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A model call that is to be made."""

    model: Callable[[TurnRequest], object]
    request: TurnRequest

    @property
    def call_id(self) -> str:
        """Nothing: there is no other model call at the same time."""
        return ""

    @property
    def name(self) -> str:
        """What errors call it."""
        return "the model"

    def __call__(self) -> object:
        """Make it; what is returned may have to be awaited first."""
        return self.model(self.request)

    def taken(self, value: object) -> object:
        """Return what came of it; raise if that is no turn."""
        return turn_in(value)


class ToolAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that is to be made. It is one also where it turns out that it cannot be."""

    call: ToolCall
    tools: Mapping[str, Tool]

    @property
    def call_id(self) -> str:
        """The id of the call, which its outcome is known by."""
        return self.call.call_id or ""

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"the tool {self.call.name!r}"

    @property
    def label(self) -> str:
        """What spans call its tool."""
        return label_of(self.call.name, self.tools)

    def __call__(self) -> object:
        """Make it; what is returned may have to be awaited first."""
        tool = self.tools.get(self.call.name)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            raise UnknownToolError(f"there is no tool {self.call.name!r}; there are: {known}")
        try:
            arguments = tool.accepted(self.call.arguments)
        except NotCalledError:
            raise
        except Exception as error:  # too deep, for example, or nothing that can be copied
            raise InvalidArgumentsError(f"arguments: {described(error)}") from error
        return tool.call(**arguments)

    def taken(self, value: object) -> object:
        """Return what came of it."""
        return value


Attempt: TypeAlias = "ModelAttempt | ToolAttempt"


class Outcome:
    """What came of an attempt: a block around it, which keeps what is raised if it is ordinary."""

    __slots__ = ("at_s", "call_id", "error", "value")

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.value: object = None
        self.at_s = 0.0  # when it came back: others may keep it waiting until it is looked at
        self.error: Exception | None = None

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Keep an ordinary exception; cancellation and interruptions pass through."""
        if isinstance(exception, Exception):
            self.error = exception
            return True
        return False
