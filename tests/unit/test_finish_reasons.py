"""What doubles say to frameworks that have words of their own for why a turn finished."""

from __future__ import annotations

import pytest

from otel_loopguard.model_turns import ModelTurn
from otel_loopguard.testing.finish_reasons import meaning_of
from tests._run_agent import call


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (("stop", "end_turn", "STOP", "completed"), "stop"),
        (("length", "max_tokens", "MAX_TOKENS", "max_output_tokens"), "length"),
        (("content_filter", "refusal", "SAFETY"), "content_filter"),
        (("tool_calls", "tool_use", "function_call"), "tool_calls"),
        (("", "error", "weather"), None),
    ],
    ids=lambda each: str(each)[:20],
)
def test_the_reason_means_the_same_in_each_providers_word(
    words: tuple[str, ...], meaning: str | None
):
    asking = (call(),)
    for word in words:
        assert meaning_of(ModelTurn(text="x", finish_reason=word)) == meaning
        assert meaning_of(ModelTurn(calls=asking, finish_reason=word)) == meaning
