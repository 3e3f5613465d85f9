"""What a policy says of prices and masking, and what it warns of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard.policy import Policy, PolicyError
from otel_loopguard.pricing import Price, Usage
from otel_loopguard.values.volatile import Masking

SMALL = {"input_per_m_usd": 1, "output_per_m_usd": 2.5}
CACHED = {**SMALL, "cache_read_per_m_usd": 0, "reasoning_per_m_usd": 4}
TABLE = "expected a table of names and values"
NOT_HERE = "there is no such option here"
PER_MILLION = "expected US dollars per million tokens, 0 or more"


def usage(said: Mapping[str, object], base: Policy | None = None) -> Usage:
    return Policy.from_mapping({"usage": said}, base=base).settings.usage


class TestUsage:
    def test_a_price(self):
        assert usage({"price": SMALL}) == Usage(
            price=Price(input_per_m_usd=1.0, output_per_m_usd=2.5)
        )
        assert usage({"price": {**CACHED, "per_request_usd": 0.01}}).price == Price(
            input_per_m_usd=1.0,
            output_per_m_usd=2.5,
            cache_read_per_m_usd=0.0,
            reasoning_per_m_usd=4.0,
            per_request_usd=0.01,
        )

    def test_prices_by_model(self):
        assert usage({"prices": {"m-*": SMALL, "n": None}}).prices == {
            "m-*": Price(input_per_m_usd=1.0, output_per_m_usd=2.5)
        }

    @pytest.mark.parametrize("value", [True, False, None])
    def test_whether_input_includes_the_cache(self, value: Any):
        assert usage({"input_includes_cache": value}) == Usage(input_includes_cache=value)

    def test_a_price_is_replaced_as_a_whole(self):
        base = Policy(usage={"price": CACHED, "prices": {"m": CACHED, "n": SMALL}})
        said = usage({"price": SMALL, "prices": {"m": SMALL}}, base=base)

        assert said == usage({"price": SMALL, "prices": {"m": SMALL, "n": SMALL}})
        assert usage({}, base=base) == base.settings.usage
        assert usage({"price": None, "prices": {"m": None, "n": None}}, base=base) == Usage()


class TestMasking:
    def test_all_of_it(self):
        said = {"enabled": False, "keys": ["etag"], "patterns": ["v[0-9]+"]}

        assert Policy(masking=said).settings.masking == Masking(
            enabled=False, keys=("etag",), patterns=("v[0-9]+",)
        )

    def test_a_list_takes_the_place_of_the_former_one(self):
        base = Policy(masking={"keys": ["etag"], "patterns": ["x"]})
        said = Policy.from_mapping({"masking": {"keys": ["seq"]}}, base=base)

        assert said.settings.masking == Masking(keys=("seq",), patterns=("x",))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"usage": 5}, f"usage: {TABLE}, got 5"),
        ({"usage": {"pricee": 5}}, f"usage.pricee: {NOT_HERE}; did you mean 'price'?"),
        ({"usage": SMALL}, f"usage.input_per_m_usd: {NOT_HERE}; write it under price"),
        (
            {"usage": {"input_includes_cache": 1}},
            "usage.input_includes_cache: expected true or false, got 1",
        ),
        (
            {"usage": {"price": 5}},
            "usage.price: expected a table of US dollars per million tokens, got 5",
        ),
        (
            {"usage": {"price": {"output_per_m_usd": 1}}},
            f"usage.price.input_per_m_usd: is missing; {PER_MILLION}",
        ),
        (
            {"usage": {"price": {"input_per_m_usd": 1}}},
            f"usage.price.output_per_m_usd: is missing; {PER_MILLION}",
        ),
        (
            {"usage": {"price": {**SMALL, "output_per_m_usd": -1}}},
            f"usage.price.output_per_m_usd: {PER_MILLION}, got -1",
        ),
        (
            {"usage": {"price": {**SMALL, "output_per_m": 1}}},
            f"usage.price.output_per_m: {NOT_HERE}; did you mean 'output_per_m_usd'?",
        ),
        (
            {"usage": {"price": {**SMALL, "per_request_usd": True}}},
            "usage.price.per_request_usd: expected US dollars per request, 0 or more, got True",
        ),
        (
            {"usage": {"prices": {"gpt-5.1": {**SMALL, "input_per_m_usd": "1"}}}},
            f"usage.prices.\"gpt-5.1\".input_per_m_usd: {PER_MILLION}, got '1'",
        ),
        ({"masking": False}, f"masking: {TABLE}, got False"),
        ({"masking": {"enabled": 1}}, "masking.enabled: expected true or false, got 1"),
        ({"masking": {"key": []}}, f"masking.key: {NOT_HERE}; did you mean 'keys'?"),
        ({"masking": {"keys": "etag"}}, "masking.keys: expected a list of names, got 'etag'"),
        (
            {"masking": {"keys": ["9"]}},
            (
                "masking.keys[0]: expected a letter, then letters, digits, "
                "'_', '-' and '.', at most 64 in all, got '9'"
            ),
        ),
        ({"masking": {"keys": [""]}}, "masking.keys[0]: expected a name, got ''"),
        (
            {"masking": {"patterns": [""]}},
            "masking.patterns[0]: expected a regular expression that is not empty, got ''",
        ),
        (
            {"masking": {"patterns": ["[a"]}},
            (
                "masking.patterns[0]: expected a regular expression "
                "(unterminated character set at position 0), got '[a'"
            ),
        ),
    ],
)
def test_a_mistake_names_its_place(said: Any, message: str):
    for make in (lambda: Policy.from_mapping(said), lambda: Policy(**said)):
        with pytest.raises(PolicyError) as caught:
            make()
        assert str(caught.value) == message
