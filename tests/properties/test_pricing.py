"""What holds for the cost of every call, whatever its counts and prices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.pricing import Price, Pricing, Usage, input_tokens_of
from otel_loopguard.steps import Step

dollars = st.floats(0, 1000)
prices = st.builds(
    Price,
    input_per_m_usd=dollars,
    output_per_m_usd=dollars,
    cache_read_per_m_usd=st.none() | dollars,
    cache_write_per_m_usd=st.none() | dollars,
    reasoning_per_m_usd=st.none() | dollars,
    per_request_usd=st.just(0) | dollars,
)
counts = st.integers(0, 10_000_000)
parts = st.tuples(counts, counts, counts, counts, counts)
"""Fresh, cache read, cache write, answer and reasoning tokens."""
anything = st.none() | st.integers() | st.integers(-5, 5) | counts

BESIDE = Usage(input_includes_cache=False)


def inclusive(fresh: int, read: int, write: int, answer: int, reasoning: int) -> Step:
    """Return the call as the conventions write it."""
    return Step(
        kind="llm",
        input_tokens=fresh + read + write,
        cache_read_tokens=read,
        cache_write_tokens=write,
        output_tokens=answer + reasoning,
        reasoning_tokens=reasoning,
    )


def apart(fresh: int, read: int, write: int, answer: int, reasoning: int) -> Step:
    """Return the same call with cached tokens beside the input tokens."""
    return Step(
        kind="llm",
        input_tokens=fresh,
        cache_read_tokens=read,
        cache_write_tokens=write,
        output_tokens=answer + reasoning,
        reasoning_tokens=reasoning,
    )


def cost(step: Step, price: Price, *, includes: bool | None = None) -> float:
    found = Pricing(Usage(price=price, input_includes_cache=includes)).cost_of(step)
    assert found is not None
    return found


@given(parts, prices)
def test_a_call_costs_the_sum_of_its_parts(tokens: tuple[int, ...], price: Price):
    into, out = price.input_per_m_usd, price.output_per_m_usd
    rates = [into, price.cache_read_per_m_usd, price.cache_write_per_m_usd]
    rates = [into if rate is None else rate for rate in rates]
    rates += [out, out if price.reasoning_per_m_usd is None else price.reasoning_per_m_usd]
    alone = [
        cost(inclusive(*(n if i == k else 0 for i, n in enumerate(tokens))), price)
        - price.per_request_usd
        for k in range(5)
    ]

    assert cost(inclusive(*tokens), price) == pytest.approx(
        price.per_request_usd + sum(n * rate / 1e6 for n, rate in zip(tokens, rates, strict=True))
    )
    assert cost(inclusive(*tokens), price) == pytest.approx(
        price.per_request_usd + sum(alone), abs=1e-9
    )


@given(parts, parts, prices)
def test_more_tokens_of_any_kind_never_cost_less(
    tokens: tuple[int, ...], more: tuple[int, ...], price: Price
):
    total = [n + m for n, m in zip(tokens, more, strict=True)]

    assert cost(inclusive(*total), price) >= cost(inclusive(*tokens), price) - 1e-9


@given(parts, prices)
def test_both_ways_of_reporting_say_the_same(tokens: tuple[int, ...], price: Price):
    assert cost(apart(*tokens), price, includes=False) == cost(inclusive(*tokens), price)
    assert input_tokens_of(apart(*tokens), BESIDE) == input_tokens_of(inclusive(*tokens), Usage())


@given(parts, prices)
def test_what_cannot_be_included_is_found_without_being_told(tokens: tuple[int, ...], price: Price):
    fresh, read, write = tokens[:3]
    told = cost(apart(*tokens), price, includes=False)
    found = cost(apart(*tokens), price)

    if fresh < read + write:
        assert found == told
    else:
        assert input_tokens_of(apart(*tokens), Usage()) == fresh


@given(
    st.builds(
        Step,
        kind=st.just("llm"),
        input_tokens=anything,
        cache_read_tokens=anything,
        cache_write_tokens=anything,
        output_tokens=anything,
        reasoning_tokens=anything,
        cost_usd=st.none() | st.floats(),
    ),
    st.builds(Usage, price=prices, input_includes_cache=st.none() | st.booleans()),
)
def test_no_counts_make_a_cost_negative(step: Step, usage: Usage):
    cost = Pricing(usage).cost_of(step)
    tokens = input_tokens_of(step, usage)

    assert cost is None or 0 <= cost < float("inf")
    assert tokens is None or 0 <= tokens <= 3 * 10**12
