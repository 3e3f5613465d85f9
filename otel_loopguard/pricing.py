"""What a step costs: its own figure, else a price that was set, else an estimate by model.

Whether cached tokens stand in the input tokens or beside them depends on the API and on whoever
wrote the span, and the same provider's name stands on both. `input_tokens_of` is the one place that
decides; the dialects hand on what the span says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from otel_loopguard.steps import Step

__all__ = ["Price", "Pricing", "Usage", "input_tokens_of"]

_MILLION = 1_000_000
_MOST_TOKENS = 10**12
"""No call has more: such a count is a mistake, and taken as unknown."""
_REMEMBERED = 256
"""Models of which it is remembered what their price is, or that there is none."""

_FRAMEWORKS = frozenset(
    (
        "",
        "autogen",
        "crewai",
        "langchain",
        "langgraph",
        "microsoft.agent_framework",
        "strands-agents",
    )
)
"""What stands on spans where a provider should: the model's name has to tell who serves it."""
_PROVIDER_IDS = {
    "az.ai.inference": "azure",
    "az.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "gcp.gen_ai": "google",
    "x_ai": "x-ai",
}
"""Providers' names in the conventions that genai-prices does not know, or takes for another's."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a model costs: US dollars per million tokens of each kind, and per request.

    Raises:
        ValueError: for a price that is negative or not finite.

    """

    input_per_m_usd: float
    output_per_m_usd: float
    cache_read_per_m_usd: float | None = None
    """`None`: as input."""
    cache_write_per_m_usd: float | None = None
    """`None`: as input."""
    reasoning_per_m_usd: float | None = None
    """`None`: as output, of which reasoning is a part."""
    per_request_usd: float = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            dollars = getattr(self, name)
            if dollars is not None and not (math.isfinite(dollars) and dollars >= 0):
                raise ValueError(f"Price.{name}: expected US dollars from 0 up, got {dollars!r}")


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """How token counts are read and priced: `[usage]` of a policy."""

    input_includes_cache: bool | None = None
    """Whether cached tokens are part of the input tokens; `None`: see `input_tokens_of`."""
    price: Price | None = None
    """The price of every model that has none in `prices`."""
    prices: Mapping[str, Price] = {}
    """Prices by model, globs allowed: the exact name counts first, then the longest glob."""


class _Tokens(NamedTuple):
    """The tokens of one call by price, each of them once."""

    fresh: int
    cache_read: int
    cache_write: int
    answer: int
    reasoning: int


_Estimate: TypeAlias = Callable[[_Tokens, str, str], "float | None"]
"""Takes tokens, provider and model of a call; returns US dollars, `None` if it knows no price."""


def count_of(value: int | None) -> int:
    """Return a count of tokens; 0 for one that is unknown, negative, or beyond all reason."""
    return _count(value) or 0


def dollars_of(value: float | None) -> float | None:
    """Return an amount of money; `None` for one that is unknown, negative, or not finite."""
    try:
        return float(value) if value is not None and 0 <= value < math.inf else None
    except OverflowError:
        return None


def input_tokens_of(step: Step, usage: Usage) -> int | None:
    """Return the input tokens of a step, cached ones included; `None` if no count is known.

    Cached tokens are taken as part of `step.input_tokens`, as the conventions of OpenTelemetry and
    OpenInference have it, also for Anthropic and Bedrock, whose APIs count them apart. They are
    added where `usage.input_includes_cache` is `False`, or where there are more cached tokens than
    input tokens: they cannot be a part of it then, whatever else is said.
    """
    if not _has_input(step):
        return None
    given = _count(step.input_tokens) or 0
    cached = (_count(step.cache_read_tokens) or 0) + (_count(step.cache_write_tokens) or 0)
    beside = usage.input_includes_cache is False or cached > given
    return given + cached if beside else given


def pricing_of(usage: Usage, *, estimate: bool) -> Pricing:
    """Return the pricing that all runs share which go by these prices."""
    return _pricing(msgspec.json.encode(usage), estimate)


@lru_cache(_REMEMBERED)
def _pricing(usage: bytes, estimate: bool) -> Pricing:  # noqa: FBT001 -- a key
    return Pricing(msgspec.json.decode(usage, type=Usage), estimate=estimate)


class Pricing:
    """What steps cost, in US dollars.

    With `estimate`, models without a price of their own are looked up in the table that comes with
    genai-prices, where that is installed. Nothing is ever fetched. Loading it takes a tenth of a
    second or two, once; one `Pricing` is meant to serve many runs, and any thread.
    """

    __slots__ = ("_estimate", "_price_of", "available", "usage")

    def __init__(self, usage: Usage | None = None, *, estimate: bool = False) -> None:
        self.usage = read = Usage() if usage is None else usage
        self._price_of = lru_cache(_REMEMBERED)(lambda *models: _price_among(read, models))
        self._estimate = load_estimate() if estimate else None
        self.available = bool(read.price or read.prices or self._estimate)
        """Whether there is any source of prices besides what steps say themselves."""

    def cost_of(self, step: Step) -> float | None:
        """Return what a step cost in US dollars, from 0 up; `None` if that is not known.

        That is its own `cost_usd`, else its tokens at the price that `usage` names for its model,
        else the estimate. A step without any count of tokens has no price.
        """
        own = dollars_of(step.cost_usd)
        if own is not None or not self.available:
            return own
        if not _has_input(step) and _count(step.output_tokens) is None:
            return None
        # The model that answered, and the one that was asked for.
        models = (step.model, step.name if step.kind == "llm" else "")
        tokens = _tokens_of(step, self.usage)
        price = self._price_of(*models)
        if price is not None:
            return _cost(tokens, price)
        if self._estimate is None:
            return None
        costs = (self._estimate(tokens, step.provider, model) for model in models if model)
        return next((cost for cost in costs if cost is not None), None)


def _has_input(step: Step) -> bool:
    counts = (step.input_tokens, step.cache_read_tokens, step.cache_write_tokens)
    return any(_count(count) is not None for count in counts)


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= _MOST_TOKENS else None


def _tokens_of(step: Step, usage: Usage) -> _Tokens:
    given = _count(step.input_tokens) or 0
    read = _count(step.cache_read_tokens) or 0
    write = _count(step.cache_write_tokens) or 0
    beside = usage.input_includes_cache is False or read + write > given
    output = _count(step.output_tokens) or 0
    reasoning = _count(step.reasoning_tokens) or 0
    return _Tokens(
        fresh=given if beside else given - read - write,
        cache_read=read,
        cache_write=write,
        # As with the cache: Gemini and xAI count reasoning beside the output.
        answer=output if reasoning > output else output - reasoning,
        reasoning=reasoning,
    )


def _cost(tokens: _Tokens, price: Price) -> float:
    into, out = price.input_per_m_usd, price.output_per_m_usd
    read, write = price.cache_read_per_m_usd, price.cache_write_per_m_usd
    reasoning = price.reasoning_per_m_usd
    return (
        price.per_request_usd
        + (
            tokens.fresh * into
            + tokens.cache_read * (into if read is None else read)
            + tokens.cache_write * (into if write is None else write)
            + tokens.answer * out
            + tokens.reasoning * (out if reasoning is None else reasoning)
        )
        / _MILLION
    )


def _price_among(usage: Usage, models: tuple[str, ...]) -> Price | None:
    named = [model for model in models if model]
    for model in named:
        if model in usage.prices:
            return usage.prices[model]
    globs = [glob for glob in usage.prices if any(fnmatchcase(model, glob) for model in named)]
    return usage.prices[max(globs, key=len)] if globs else usage.price


@cache
def load_estimate() -> _Estimate | None:
    """Return what prices calls by the table of genai-prices; `None` if that cannot be used here."""
    try:
        from genai_prices import Usage as Counts  # noqa: PLC0415 -- an extra, and slow to import
        from genai_prices import calc_price  # noqa: PLC0415 -- as above
    except Exception:  # noqa: BLE001 -- not installed, or not able to run here
        return None

    def asked(tokens: _Tokens, provider: str, model: str) -> float | None:
        name = provider.lower()
        provider_id = None if name in _FRAMEWORKS else _PROVIDER_IDS.get(name, name)
        try:
            counts = Counts(
                input_tokens=tokens.fresh + tokens.cache_read + tokens.cache_write,
                cache_read_tokens=tokens.cache_read,
                cache_write_tokens=tokens.cache_write,
                output_tokens=tokens.answer + tokens.reasoning,
            )
            return float(calc_price(counts, model, provider_id=provider_id).total_price)
        except Exception:  # noqa: BLE001 -- a foreign table: what it cannot price is not known
            return None

    @lru_cache(_REMEMBERED)
    def knows(provider: str, model: str) -> bool:
        return asked(_ONE_TOKEN, provider, model) is not None

    def estimate(tokens: _Tokens, provider: str, model: str) -> float | None:
        return asked(tokens, provider, model) if knows(provider, model) else None

    estimate(_ONE_TOKEN, "openai", "gpt-4o")  # loads the table now, not in the first step
    return estimate


_ONE_TOKEN = _Tokens(fresh=1, cache_read=0, cache_write=0, answer=0, reasoning=0)
