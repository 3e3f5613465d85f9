"""What a run of the loop is given, and what is wrong with that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

import msgspec

from otel_loopguard.agent_loop.awaited import accepts, is_awaited
from otel_loopguard.agent_loop.messages import Message, TurnRequest
from otel_loopguard.agent_loop.tools import Tool
from otel_loopguard.options.errors import refuse_unknown, wrong
from otel_loopguard.options.kinds import seconds_of
from otel_loopguard.policy import Policy

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class RunOptions(TypedDict, total=False):
    """What else a run may be told, beside its limits."""

    fatal: tuple[type[Exception], ...]
    """What ends the run as `tool_error` where a tool raises it; all else the model is told."""
    check_result: Callable[[Any], object] | None
    """Given what the run came to: raises, or answers False, to end it as `invalid_result`."""
    max_output_tokens: int | None
    """How long one answer of the model may be; said in each request."""
    retry_output_tokens: int | None
    """The same for a second try, once, of a turn that was cut; `None` does not try again."""
    agent: str
    """The agent's name, on spans and in reports."""
    model_name: str
    """The model's name, likewise."""
    provider_name: str
    """Who serves it, on spans."""
    clock: Callable[[], float]
    """Seconds on any monotonic line."""
    tracer_provider: TracerProvider | None
    """Where spans go; the global one if `None`."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run is given, once it is known to be right."""

    model: Callable[[TurnRequest], object]
    messages: tuple[Message, ...]
    tools: Mapping[str, Tool]
    max_steps: int
    max_tool_calls: int
    max_tokens: int
    deadline_s: float
    policy: Policy
    temporary: tuple[type[Exception], ...]
    fatal: tuple[type[Exception], ...] = ()
    check_result: Callable[[Any], object] | None = None
    max_output_tokens: int | None = None
    retry_output_tokens: int | None = None
    agent: str = "agent"
    model_name: str = ""
    provider_name: str = ""
    clock: Callable[[], float] = time.monotonic
    tracer_provider: Any = None

    def accepts(self, output: object) -> bool:
        """Whether what a run came to is accepted; the check may raise as well."""
        check = self.check_result
        return check is None or accepts(check, output, "check_result")


def plan_of(
    model: Callable[[TurnRequest], object],
    prompt: str | Sequence[Message],
    tools: Iterable[Tool],
    **given: Any,
) -> Plan:
    """Return what a run is given, checked.

    Raises:
        PolicyError: for what is not as it must be; limits are not switched off by 0 or `None`.

    """
    refuse_unknown(given, Plan.__struct_fields__, "")
    limit, retry = given.get("max_output_tokens"), given.get("retry_output_tokens")
    for name in ("max_steps", "max_tool_calls", "max_tokens"):
        _positive(given[name], name)
    for name, value in (("max_output_tokens", limit), ("retry_output_tokens", retry)):
        if value is not None:
            _positive(value, name)
    if limit is not None and retry is not None and retry <= limit:
        raise wrong("retry_output_tokens", f"more than max_output_tokens, which is {limit}", retry)
    for name in ("temporary", "fatal"):
        _exceptions(given.get(name, ()), name)
    for name in ("agent", "model_name", "provider_name"):
        if not isinstance(given.get(name, ""), str):
            raise wrong(name, "a text", given[name])
    _callables(model, given)
    named = _by_name(tools)
    ends = {name: {"finish": True} for name, tool in named.items() if tool.finish}
    policy = Policy.checked(given["policy"])
    checked: dict[str, Any] = {
        "model": model,
        "messages": _messages(prompt),
        "tools": named,
        "deadline_s": seconds_of(given["deadline_s"], "deadline_s"),
        "policy": Policy.from_mapping({"tools": ends}, base=policy) if ends else policy,
    }
    return Plan(**{**given, **checked})


def _callables(model: object, given: Mapping[str, object]) -> None:
    check, provider = given.get("check_result"), given.get("tracer_provider")
    if not callable(model):
        raise wrong("model", "a callable that is given a TurnRequest", model)
    if check is not None and (not callable(check) or is_awaited(check)):
        raise wrong("check_result", "a callable or None, none that is awaited", check)
    if not callable(given.get("clock", time.monotonic)):
        raise wrong("clock", "a callable that answers with seconds", given["clock"])
    if provider is not None and not callable(getattr(provider, "get_tracer", None)):
        raise wrong("tracer_provider", "a TracerProvider or None", provider)


def _positive(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong(name, "a whole number of at least 1: the loop has no run without it", value)


def _exceptions(value: object, name: str) -> None:
    given = value
    classes = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)
    if not all(isinstance(each, type) and issubclass(each, Exception) for each in classes):
        raise wrong(name, "a tuple of exception classes, such as (TimeoutError,)", given)


def _messages(prompt: object) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        return (Message(role="user", text=prompt),)
    given = prompt
    said = cast("Sequence[object]", prompt) if isinstance(prompt, Sequence) else ()
    messages = tuple(each for each in said if isinstance(each, Message))
    if not messages or len(messages) < len(said):
        raise wrong("prompt", "a text, or a sequence of messages", given)
    return messages


def _by_name(tools: object) -> dict[str, Tool]:
    if not isinstance(tools, Iterable):
        raise wrong("tools", "a list of tools, [Tool(name=..., call=...)]", tools)
    named: dict[str, Tool] = {}
    for place, tool in enumerate(cast("Iterable[object]", tools)):
        if not isinstance(tool, Tool):
            raise wrong(f"tools[{place}]", "a Tool(name=..., call=...)", tool)
        if tool.name in named:
            raise wrong(f"tools[{place}].name", "a name that no other tool has", tool.name)
        named[tool.name] = tool
    return named
