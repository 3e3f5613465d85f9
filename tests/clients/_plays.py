"""Which scripts every client plays, and what it has to show of those in which nothing is odd."""

from __future__ import annotations

from collections.abc import Mapping

from otel_loopguard.testing.scripts import OfferedTool, script_named
from otel_loopguard.testing.wire import usage_of
from tests.clients._seen import NAMES, SCHEMA

LIMIT = 4
"""Turns after which a play is left."""

PLAIN = (
    *("endless", "alternate", "cycle:3", "varying", "parallel:3", "handoff", "slow:0.05"),
    *("finish3", "finish:4", "poll", "poll:3", "error_tool"),
)
"""Scripts that give the same answers by every API."""
ANSWERED_ODDLY = (
    *("unknown_tool", "bad_arguments", "misfit_arguments"),
    *("truncated", "truncated_call", "filtered", "empty"),
)
FAILING = tuple(f"http_error:{status}" for status in (400, 401, 403, 404, 429, 500, 503, 529))
ODD = (*ANSWERED_ODDLY, *FAILING)
"""Scripts of which each client shows what it will."""
EVERY = (*PLAIN, *ODD)

TOOLS = tuple(OfferedTool(name=name, parameters=SCHEMA) for name in NAMES)

FINISHES: Mapping[str, tuple[str, str]] = {
    "openai-chat": ("tool_calls", "stop"),
    "openai-responses": ("completed", "completed"),
    "anthropic-messages": ("tool_use", "end_turn"),
    "gemini": ("STOP", "STOP"),
    "ai-sdk": ("tool-calls", "stop"),
}
"""How a turn with calls and one without are said to have ended."""


def expected(script: str) -> list[dict[str, object]]:
    """Return what the script says, turn by turn, until it answers or the limit is reached."""
    turns: list[dict[str, object]] = []
    results = 0
    while len(turns) < LIMIT:
        turn = script_named(script)(TOOLS, results)
        usage = usage_of(results)
        turns.append(
            {
                "text": turn.text,
                "calls": [(call.name, dict(call.arguments)) for call in turn.calls],
                "tokens": (usage.input_tokens, usage.cached_tokens, usage.output_tokens),
            }
        )
        if not turn.calls:
            break
        results += len(turn.calls)
    return turns
