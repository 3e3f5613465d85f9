"""A support agent: a hand-written loop over the `openai` client, under a guard."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from openai import OpenAI

from otel_loopguard import LoopGuard, LoopGuardError, Policy, Step, ToolCall

POLICY = Policy.from_toml(Path(__file__).with_name("loopguard.toml").read_text("utf-8"))


def search(query: str) -> str:
    """Search the handbook."""
    return f"no results for {query}"


TOOLS: Mapping[str, Callable[..., str]] = {"search": search}
SHOWN: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search the handbook.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]


def answer(
    client: OpenAI,
    question: str,
    *,
    model: str = "gpt-5-mini",
    tools: Mapping[str, Callable[..., str]] = TOOLS,
) -> str:
    """Answer a question. Raises `LoopGuardError` if the guard stops the run."""
    guard = LoopGuard(POLICY)
    history: list[Any] = [{"role": "user", "content": question}]
    try:
        while True:
            message = _ask(guard, client, model, history)
            if not message.tool_calls:
                return message.content or ""
            history.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                result = _call(guard, tools, call)
                history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    finally:
        guard.end()


def _ask(guard: LoopGuard, client: OpenAI, model: str, history: list[Any]) -> Any:
    may(guard, Step(kind="llm", name=model))
    completion = client.chat.completions.create(model=model, messages=history, tools=SHOWN)
    choice, usage = completion.choices[0], completion.usage
    calls = tuple(
        ToolCall(name=call.function.name, arguments=call.function.arguments, call_id=call.id)
        for call in choice.message.tool_calls or ()
    )
    guard.record(
        Step(
            kind="llm",
            name=model,
            output=choice.message.content or "",
            finish_reasons=(choice.finish_reason,),
            tool_calls=calls,
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
        )
    )
    return choice.message


def _call(guard: LoopGuard, tools: Mapping[str, Callable[..., str]], call: Any) -> str:
    name, arguments = call.function.name, call.function.arguments
    may(guard, Step(kind="tool", name=name, arguments=arguments, call_id=call.id))
    try:
        result, error = tools[name](**json.loads(arguments)), None
    except Exception as failed:  # noqa: BLE001 -- the model is told what went wrong
        result = error = f"{type(failed).__name__}: {failed}"
    guard.record(
        Step(
            kind="tool",
            name=name,
            arguments=arguments,
            call_id=call.id,
            result=result,
            error=error,
        )
    )
    return result


def may(guard: LoopGuard, step: Step) -> None:
    """Ask the guard before each step."""
    decision = guard.check(step)
    if not decision.allowed:
        raise LoopGuardError(decision)
