"""DSPy's programs, `ReActV2` and `ReAct` among them, which raise when a run is stopped.

Wrapped are the calls of a language model, `BaseLM.__call__` and `acall`, and those of a tool,
`Tool.__call__` and `acall`. A refused model call raises `DSPyRunAborted`, which is a `DSPyError`
too, out of the program. `ReActV2` writes into the `dspy.History` that it is given, so that a
further call with the same one goes on; the trajectory of a `ReAct` is lost, as with any error.

A refused tool call is not made: what the tool seems to have answered tells the model so. A program
that is stopped inside a tool ends that tool in this way, as DSPy does with every exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from dspy.utils.exceptions import DSPyError

from otel_loopguard.abort import RunAborted
from otel_loopguard.abort.patches import Entry, Wrapped
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration, reason

__all__ = ["DSPyRunAborted", "install", "uninstall"]


_ANSWERS = frozenset({"finish", "submit"})
"""The tools of an agent by which its model answers."""


class DSPyRunAborted(RunAborted, DSPyError):  # noqa: N818 -- as `RunAborted`
    """The loop guard stopped the run."""

    def __init__(self, report: RunReport, run_id: str = "") -> None:
        DSPyError.__init__(self, code="run_aborted")
        Exception.__init__(self, report, run_id)
        self.report = report
        self.run_id = run_id
        self.message = str(self)


def _run(wrapped: Wrapped, _program: Any, args: Any, kwargs: Any) -> Any:
    with _INTEGRATION.run():
        return wrapped(*args, **kwargs)


async def _run_async(wrapped: Wrapped, _program: Any, args: Any, kwargs: Any) -> Any:
    with _INTEGRATION.run():
        return await wrapped(*args, **kwargs)


def _model(wrapped: Wrapped, _model: Any, args: Any, kwargs: Any) -> Any:
    _INTEGRATION.ask(DSPyRunAborted)
    return wrapped(*args, **kwargs)


async def _model_async(wrapped: Wrapped, _model: Any, args: Any, kwargs: Any) -> Any:
    _INTEGRATION.ask(DSPyRunAborted)
    return await wrapped(*args, **kwargs)


def _format(wrapped: Wrapped, _adapter: Any, args: Any, kwargs: Any) -> Any:
    """Return the messages of a request, with the hint at their end if there is one."""
    messages = wrapped(*args, **kwargs)
    hint = _INTEGRATION.hint() if isinstance(messages, list) else None
    return messages if hint is None else [*messages, {"role": "user", "content": hint}]


def _tool(wrapped: Wrapped, tool: Any, args: Any, kwargs: Any) -> Any:
    if tool.name in _ANSWERS:
        return wrapped(*args, **kwargs)
    with _INTEGRATION.calling(tool.name, kwargs) as calling:
        refused = calling.refusal is not None
        calling.result = reason(calling.refusal) if refused else wrapped(*args, **kwargs)
        return calling.result


async def _tool_async(wrapped: Wrapped, tool: Any, args: Any, kwargs: Any) -> Any:
    if tool.name in _ANSWERS:
        return await wrapped(*args, **kwargs)
    with _INTEGRATION.calling(tool.name, kwargs) as calling:
        refused = calling.refusal is not None
        calling.result = reason(calling.refusal) if refused else await wrapped(*args, **kwargs)
        return calling.result


def _programs(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.Module, "__call__", _run)
    yield Entry(module.Module, "acall", _run_async)


def _models(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.BaseLM, "__call__", _model)
    yield Entry(module.BaseLM, "acall", _model_async)


def _adapters(module: ModuleType) -> Iterator[Entry]:
    # Each has its own, which is made of that of the class above when it is defined.
    classes = [module.Adapter]
    while classes:
        adapter = classes.pop()
        classes += adapter.__subclasses__()
        yield Entry(adapter, "format", _format)


def _traced(module: ModuleType) -> Iterator[Entry]:
    # OpenInference puts wrappers here, around what they have found in the class above.
    for name, called in (("__call__", _model), ("acall", _model_async)):
        if name in vars(module.LM):
            yield Entry(module.LM, name, called)


def _tools(module: ModuleType) -> Iterator[Entry]:
    yield Entry(module.Tool, "__call__", _tool)
    yield Entry(module.Tool, "acall", _tool_async)


_INTEGRATION = Integration(
    "DSPy",
    {
        "dspy.primitives.module": _programs,
        "dspy.adapters": _adapters,
        "dspy.clients.base_lm": _models,
        "dspy.clients.lm": _traced,
        "dspy.adapters.types.tool": _tools,
    },
)

install = _INTEGRATION.install
uninstall = _INTEGRATION.uninstall
