"""Reads what a model call has used, or all that an agent has, under present and older names."""

from __future__ import annotations

from typing import TypedDict

from otel_loopguard import semconv
from otel_loopguard.dialects._values import Attributes, Names, first_amount, first_count

_INPUT_TOKENS = (semconv.GEN_AI_USAGE_INPUT_TOKENS, semconv.GEN_AI_USAGE_PROMPT_TOKENS)
_OUTPUT_TOKENS = (semconv.GEN_AI_USAGE_OUTPUT_TOKENS, semconv.GEN_AI_USAGE_COMPLETION_TOKENS)
_CACHE_READ_TOKENS = (semconv.GEN_AI_USAGE_CACHE_READ, semconv.GEN_AI_USAGE_CACHE_READ_OLD)
_CACHE_WRITE_TOKENS = (
    semconv.GEN_AI_USAGE_CACHE_WRITE,
    semconv.GEN_AI_USAGE_CACHE_CREATION,
    semconv.GEN_AI_USAGE_CACHE_WRITE_OLD,
    semconv.GEN_AI_USAGE_CACHE_CREATION_OLD,
)
_REASONING_TOKENS = (
    semconv.GEN_AI_USAGE_REASONING,
    semconv.GEN_AI_USAGE_REASONING_TRACELOOP,
    semconv.GEN_AI_USAGE_REASONING_PYDANTIC,
)
_COST = (semconv.PYDANTIC_COST,)


_ALL = frozenset(
    (
        *_INPUT_TOKENS,
        *_OUTPUT_TOKENS,
        *_CACHE_READ_TOKENS,
        *_CACHE_WRITE_TOKENS,
        *_REASONING_TOKENS,
        *_COST,
    )
)


class Usage(TypedDict):
    """What a step has used, as the fields of a step."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None


_NOTHING_KNOWN = Usage(
    input_tokens=None,
    output_tokens=None,
    cache_read_tokens=None,
    cache_write_tokens=None,
    reasoning_tokens=None,
    cost_usd=None,
)


def usage_of(attributes: Attributes) -> Usage:
    """Return what one call has used."""
    if _ALL.isdisjoint(attributes):  # as is each span that starts
        return _NOTHING_KNOWN
    return Usage(
        input_tokens=first_count(attributes, _INPUT_TOKENS),
        output_tokens=first_count(attributes, _OUTPUT_TOKENS),
        cache_read_tokens=first_count(attributes, _CACHE_READ_TOKENS),
        cache_write_tokens=first_count(attributes, _CACHE_WRITE_TOKENS),
        reasoning_tokens=first_count(attributes, _REASONING_TOKENS),
        cost_usd=first_amount(attributes, _COST),
    )


def summed_usage_of(attributes: Attributes) -> Usage:
    """Return what all calls below have used, also where the names say outright that it is a sum."""
    return Usage(
        input_tokens=first_count(attributes, _summed(_INPUT_TOKENS)),
        output_tokens=first_count(attributes, _summed(_OUTPUT_TOKENS)),
        cache_read_tokens=first_count(attributes, _summed(_CACHE_READ_TOKENS)),
        cache_write_tokens=first_count(attributes, _summed(_CACHE_WRITE_TOKENS)),
        reasoning_tokens=first_count(attributes, _summed(_REASONING_TOKENS)),
        cost_usd=first_amount(attributes, _COST),
    )


def _summed(names: Names) -> Names:
    old, new = "gen_ai.usage.", semconv.GEN_AI_AGGREGATED_USAGE
    return (*names, *(name.replace(old, new) for name in names))
