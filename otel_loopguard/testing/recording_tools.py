"""Tools that note how often they really ran, and with what.

What a framework reports is what it believes it has done; a count in the tool's own code is not.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import msgspec

_KEPT = 100
"""How many of the latest executions are kept; a runaway has no end, a test's memory has."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Answer_co = TypeVar("_Answer_co", covariant=True)


class ToolExecution(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a tool ran."""

    arguments: Mapping[str, Any]
    """What it ran with, by the names of its parameters; those that were left out are not in it."""


class RecordingTool(Protocol[_Parameters, _Answer_co]):
    """A function that counts its executions; `recording_tool` makes one of any function."""

    @property
    def executions(self) -> int:
        """How often it has run, failed attempts included."""
        ...

    @property
    def calls(self) -> tuple[ToolExecution, ...]:
        """The latest 100 executions, oldest first."""
        ...

    @property
    def __name__(self) -> str: ...

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer_co:
        """Run the tool."""
        ...


def recording_tool(
    function: Callable[_Parameters, _Result],
) -> RecordingTool[_Parameters, _Result]:
    """Make a tool of a function, plain or async, that counts how often it has run.

        @recording_tool
        def lookup(order: int) -> str: ...

        lookup.executions, lookup.calls[-1].arguments

    It is a function as the one given: name, signature, annotations and docstring are the same, so
    that frameworks make the same schema of it, and an async one is awaited. Put it below a
    framework's own decorator. An execution counts once the function's body is reached: a call with
    wrong arguments, or one that a framework has refused, is none. Safe to be run by many threads.

    Raises `TypeError` for what is no function or method, such as a class or a finished tool of a
    framework, and for generators, whose body runs when somebody asks for their values.
    """
    if not inspect.isroutine(function) or _makes_values(function):
        raise TypeError(
            f"{function!r} cannot be a recording tool; expected a function or a method that "
            "answers with a value: wrap the function before a framework makes a tool of it"
        )
    signature = inspect.signature(function)
    lock = threading.Lock()

    def note(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the function says it better
            return
        # Copies, because tools may change what they are called with.
        kept = {name: _copied(value) for name, value in bound.arguments.items()}
        execution = ToolExecution(arguments=kept)
        with lock:
            tool.executions += 1
            tool.calls = (*tool.calls, execution)[-_KEPT:]

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            note(args, kwargs)
            return await function(*args, **kwargs)

        tool: Any = awaited
    else:

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            note(args, kwargs)
            return function(*args, **kwargs)

        tool = called
    tool.executions = 0
    tool.calls = ()
    return cast("RecordingTool[_Parameters, _Result]", tool)


def _copied(value: object) -> object:
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 -- connections and locks, for example, are there once
        return value


def _makes_values(function: Callable[..., object]) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
