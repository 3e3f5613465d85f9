"""Where our counts of a recording are not the true ones, and why.

Each entry is held to be true: what is right after all must be taken out of here.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias

from tests._recordings import Recording

What: TypeAlias = Literal[
    "model requests",
    "tool executions",
    "tokens",
    "runs",
    "live decisions",
    "live span",
    "live context",
]


class Departure(NamedTuple):
    """A figure that cannot be had from the spans of some recordings."""

    folder: str
    """A glob, as is `script`."""
    script: str
    what: tuple[What, ...]
    why: str

    def is_about(self, recording: Recording) -> bool:
        """Say whether a recording is one of them."""
        folder, script, _ = recording
        return fnmatchcase(folder, self.folder) and fnmatchcase(script, self.script)


_NO_MODEL_SPANS = "no span shows a model call"
_NO_USAGE = "no span says what was used"
_NO_CONTENT = "tools have no spans, and without content nothing shows which were called"
_REFUSED = "the arguments were refused, so no tool ran; each attempt has a span, and counts"
_OWN_TRACES = "each call is a trace of its own, and no id holds them together"
_STREAMED = "the usage of streamed answers is on no span"
_LATE = "a span shows only at its end what it is: live, the provider's span below it was first"

EXCEPTIONS: tuple[Departure, ...] = (
    Departure("*", "badargs", ("tool executions",), _REFUSED),
    Departure("langchain-*", "finish3_stream", ("tokens",), _STREAMED),
    Departure("openai-agents-*-chatapi", "*_stream", ("tokens",), _STREAMED),
    Departure("autogen-native", "*", ("model requests", "tokens"), _NO_MODEL_SPANS),
    Departure("claude-agent-sdk-mcp-native", "*", ("runs",), _OWN_TRACES),
    Departure("claude-agent-sdk-mcp-native", "*", ("model requests", "tokens"), _NO_MODEL_SPANS),
    Departure("claude-agent-sdk-openinference", "*", ("model requests",), _NO_MODEL_SPANS),
    Departure(
        "claude-agent-sdk-openinference",
        "*",
        ("tokens",),
        "the agent's span alone says what was used, and counts too few output tokens",
    ),
    Departure("dspy-openinference", "*", ("tokens",), _NO_USAGE),
    Departure(
        "google-adk-openinference",
        "*",
        ("model requests", "tokens"),
        "model calls have no spans: each overwrites the last one on the agent's",
    ),
    Departure("llamaindex-genai", "*", ("model requests", "tokens"), _NO_MODEL_SPANS),
    Departure("raw-*-nocontent", "*", ("tool executions",), _NO_CONTENT),
    Departure("raw-*-nocontent", "endless_noroot", ("runs",), _OWN_TRACES),
    Departure("raw-openai-chat-v2", "*", ("tool executions",), _NO_CONTENT),
    Departure("raw-openai-chat-v2", "endless_noroot", ("runs",), _OWN_TRACES),
    Departure(
        "raw-openai-responses-tl",
        "endless_noroot",
        ("runs", "tool executions"),
        "each call is a trace of its own, and answers name other ids than the calls asked for",
    ),
    Departure(
        "raw-openai-responses-tl",
        "truncated",
        ("model requests", "runs"),
        "an answer that is cut off has no span",
    ),
    Departure(
        "raw-openai-responses-v2",
        "*",
        ("model requests", "tool executions", "tokens", "runs"),
        "the instrumentation writes no spans for the Responses API",
    ),
    Departure("smolagents-genai*", "*", ("model requests", "tokens"), _NO_MODEL_SPANS),
    Departure("smolagents-genai*", "*", ("tool executions",), "no span shows a tool"),
    Departure("langchain-oi-prov", "*", ("live span",), _LATE),
    Departure("llamaindex-openinference", "*", ("live span",), _LATE),
    Departure(
        "langchain-oi-prov",
        "*",
        ("live context",),
        "live, a model call without a parent and a context joins no run that has tripped",
    ),
    Departure(
        "google-adk-legacy",
        "endless",
        ("live decisions",),
        "the answer is on a span that shows only at its end that it is a model call",
    ),
    Departure(
        "openai-agents-v2",
        "agent_as_tool",
        ("live decisions",),
        "agents have their names at their end only",
    ),
)


def reason_of(recording: Recording, what: What) -> str | None:
    """Return why a figure of a recording is not the true one; `None` if it must be."""
    return next(
        (each.why for each in EXCEPTIONS if what in each.what and each.is_about(recording)), None
    )
