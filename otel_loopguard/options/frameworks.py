"""The frameworks that have integrations, and how an option names some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from otel_loopguard.options.errors import wrong

FRAMEWORKS: Mapping[str, str] = {
    "ag2": "ag2",
    "agent_framework": "agent_framework",
    "agents": "agents",
    "agno": "agno",
    "anthropic": "anthropic",
    "autogen_agentchat": "autogen_agentchat",
    "claude_agent_sdk": "claude_agent_sdk",
    "crewai": "crewai",
    "dspy": "dspy",
    "google_adk": "google.adk",
    "haystack": "haystack.components.agents.agent",
    "langchain": "langgraph.pregel",
    "llama_index": "llama_index.core.agent.workflow",
    "mcp": "mcp",
    "openai": "openai",
    "pydantic_ai": "pydantic_ai",
    "semantic_kernel": "semantic_kernel",
    "smolagents": "smolagents",
    "strands": "strands",
}
"""The integrations by their names, each with the module whose import brings it along."""


def integrations_of(value: object, path: str) -> tuple[str, ...] | None:
    """Return the names of some integrations; `None` for `None`.

    Raises:
        PolicyError: for anything but a list of names of integrations that there are; `path` is what
            it calls the value.

    """
    if value is None:
        return None
    given = value  # not narrowed to a type that holds anything
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    names = tuple(cast("Iterable[object]", value)) if is_list else ()
    if not is_list or any(name not in FRAMEWORKS for name in names):
        raise wrong(path, f"names out of {', '.join(FRAMEWORKS)}", given)
    return cast("tuple[str, ...]", names)
