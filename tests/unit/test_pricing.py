"""What a step costs: which source says so, and which tokens are counted at which price."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Generator, Mapping
from typing import Any

import genai_prices
import msgspec
import pytest

from otel_loopguard import LoopGuard
from otel_loopguard.pricing import Price, Pricing, Usage, input_tokens_of, load_estimate
from otel_loopguard.steps import Step, StepKind

SONNET = Price(
    input_per_m_usd=3,
    output_per_m_usd=15,
    cache_read_per_m_usd=0.3,
    cache_write_per_m_usd=3.75,
)
PLAIN = Price(input_per_m_usd=1, output_per_m_usd=2)
HALF_CENT = Price(input_per_m_usd=0, output_per_m_usd=0, per_request_usd=0.005)


def call(kind: StepKind = "llm", /, **fields: Any) -> Step:
    return Step(kind=kind, **fields)


def cost(step: Step, price: Price | None = None) -> float | None:
    return Pricing(Usage(price=price)).cost_of(step)


class TestInputTokensPerProvider:
    """One call with 9,000 fresh tokens, and cached ones, as each API and package writes it."""

    @pytest.mark.parametrize(
        ("written_by", "provider", "input_tokens", "read", "write"),
        [
            # APIs whose own count includes the cached tokens.
            ("openai chat and responses", "openai", 124_000, 115_000, None),
            ("azure openai", "azure.ai.openai", 124_000, 115_000, None),
            ("openai, cache writes", "openai", 124_000, 100_000, 15_000),
            ("gemini, prompt_token_count", "gcp.gemini", 124_000, 115_000, None),
            ("vertex ai", "gcp.vertex_ai", 124_000, 115_000, None),
            ("openinference, google", "google", 124_000, 115_000, None),
            ("xai", "x_ai", 124_000, 115_000, None),
            ("deepseek, hits and misses", "deepseek", 124_000, 115_000, None),
            ("mistral", "mistral_ai", 124_000, 115_000, None),
            ("groq", "groq", 124_000, 115_000, None),
            ("cohere", "cohere", 124_000, 115_000, None),
            ("perplexity", "perplexity", 124_000, 115_000, None),
            # Anthropic's API counts them apart; these packages add them up.
            ("genai-anthropic", "anthropic", 124_000, 100_000, 15_000),
            ("the Anthropic SDK's own spans", "anthropic", 124_000, 115_000, 0),
            ("openinference, anthropic", "anthropic", 124_000, 100_000, 15_000),
            ("openllmetry, anthropic", "anthropic", 124_000, 115_000, 0),
            ("pydantic-ai, anthropic", "anthropic", 124_000, 0, 115_000),
            ("langchain, bedrock", "aws.bedrock", 124_000, 100_000, 15_000),
            ("strands after 1.53", "strands-agents", 124_000, 115_000, 0),
            # These hand on what the API said.
            ("anthropic's raw usage", "anthropic", 9_000, 115_000, 0),
            ("anthropic's raw usage, a write", "anthropic", 9_000, 0, 115_000),
            ("claude on vertex, raw", "gcp.vertex_ai", 9_000, 115_000, 0),
            ("openllmetry, bedrock converse", "aws.bedrock", 9_000, 100_000, 15_000),
            ("bedrock converse, raw", "aws.bedrock", 9_000, 115_000, None),
            ("strands up to 1.53", "strands-agents", 9_000, 115_000, 0),
            # Nobody known, and nobody named.
            ("somebody", "", 124_000, 115_000, None),
            ("somebody", "", 9_000, 115_000, None),
        ],
    )
    def test_cached_tokens_are_counted_once(
        self, written_by: str, provider: str, input_tokens: int, read: int, write: int | None
    ):
        step = call(
            provider=provider,
            input_tokens=input_tokens,
            cache_read_tokens=read,
            cache_write_tokens=write,
            output_tokens=200,
        )

        assert input_tokens_of(step, Usage()) == 124_000, written_by
        assert cost(step, SONNET) == pytest.approx(
            (9_000 * 3 + read * 0.3 + (write or 0) * 3.75 + 200 * 15) / 1e6
        )

    @pytest.mark.parametrize(
        ("includes", "input_tokens", "expected"),
        [
            (None, 10_000, 10_000),
            (True, 10_000, 10_000),
            (False, 10_000, 18_000),
            (None, 8_000, 8_000),
            (None, 7_999, 15_999),
            (True, 7_999, 15_999),
            (False, 7_999, 15_999),
        ],
    )
    def test_what_the_policy_says_unless_the_counts_contradict_it(
        self, *, includes: bool | None, input_tokens: int, expected: int
    ):
        step = call(provider="anthropic", input_tokens=input_tokens, cache_read_tokens=8_000)

        assert input_tokens_of(step, Usage(input_includes_cache=includes)) == expected

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, None),
            ({"output_tokens": 5}, None),
            ({"input_tokens": 0}, 0),
            ({"input_tokens": 7}, 7),
            ({"cache_read_tokens": 7}, 7),
            ({"cache_write_tokens": 7, "cache_read_tokens": 2}, 9),
            ({"input_tokens": -1}, None),
            ({"input_tokens": 10, "cache_read_tokens": -3}, 10),
            ({"input_tokens": 10**12}, 10**12),
            ({"input_tokens": 10**12 + 1}, None),
        ],
    )
    def test_what_is_not_known_or_cannot_be(self, fields: Mapping[str, int], expected: int | None):
        assert input_tokens_of(call(**fields), Usage()) == expected


class TestTokensAtTheirPrice:
    def test_the_example_of_the_page(self):
        step = call(input_tokens=124_000, cache_read_tokens=115_000, output_tokens=200)

        assert cost(step, SONNET) == pytest.approx(0.0645)
        assert cost(step, SONNET) == pytest.approx(
            9_000 * 3 / 1e6 + 115_000 * 0.3 / 1e6 + 200 * 15 / 1e6
        )

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"input_tokens": 100}, 100.0),
            ({"input_tokens": 100, "cache_read_tokens": 60}, 100.0),
            ({"input_tokens": 100, "cache_write_tokens": 60}, 100.0),
            ({"output_tokens": 100}, 200.0),
            ({"output_tokens": 100, "reasoning_tokens": 60}, 200.0),
            ({"input_tokens": 100, "output_tokens": 100}, 300.0),
        ],
    )
    def test_a_price_that_is_not_named_is_that_of_all_input_or_output(
        self, fields: Mapping[str, int], expected: float
    ):
        assert cost(call(**fields), PLAIN) == pytest.approx(expected / 1e6)

    @pytest.mark.parametrize(
        ("provider", "output_tokens", "expected"),
        [
            ("openai", 382 + 151, 382 * 7 + 151 * 2),  # part of the output
            ("gcp.gemini", 151, 382 * 7 + 151 * 2),  # candidates, thoughts beside them
            ("x_ai", 1, 382 * 7 + 1 * 2),
            ("", 382, 382 * 7),
            ("", None, 382 * 7),
        ],
    )
    def test_reasoning(self, provider: str, output_tokens: int | None, expected: float):
        thinking = Price(input_per_m_usd=1, output_per_m_usd=2, reasoning_per_m_usd=7)
        step = call(
            provider=provider,
            input_tokens=0,
            output_tokens=output_tokens,
            reasoning_tokens=382,
        )

        assert cost(step, thinking) == pytest.approx(expected / 1e6)

    def test_a_request_may_cost_by_itself(self):
        assert cost(call(input_tokens=1), HALF_CENT) == 0.005

    @pytest.mark.parametrize(
        "fields",
        [
            {"input_tokens": -100, "output_tokens": 10},
            {"input_tokens": 10, "output_tokens": -100},
            {"input_tokens": 10, "cache_read_tokens": -100, "output_tokens": 10},
            {"input_tokens": 10, "output_tokens": 10, "reasoning_tokens": -100},
            {"input_tokens": 10**300, "output_tokens": 10},
        ],
    )
    def test_no_count_makes_a_cost_negative(self, fields: Mapping[str, int]):
        found = cost(call(**fields), PLAIN)

        assert found is not None
        assert 0 <= found <= 30 / 1e6


class TestWhichSource:
    STEP = call(model="gpt-4o-2024-08-06", name="gpt-4o", provider="openai", input_tokens=1_000_000)

    def test_a_step_knows_best(self):
        step = msgspec.structs.replace(self.STEP, cost_usd=0.25)

        assert cost(step, PLAIN) == 0.25
        assert cost(msgspec.structs.replace(step, cost_usd=0.0), PLAIN) == 0

    @pytest.mark.parametrize("own", [-1.0, math.nan, math.inf, -math.inf])
    def test_unless_that_is_no_cost(self, own: float):
        step = msgspec.structs.replace(self.STEP, cost_usd=own)

        assert cost(step, PLAIN) == 1
        assert cost(step) is None

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            ({"gpt-4o-2024-08-06": 5, "gpt-4o": 4, "gpt-*": 3}, 5),
            ({"gpt-4o": 4, "gpt-4o-2024*": 3}, 4),  # asked for, and exact
            ({"gpt-*": 3, "gpt-4o-*": 4, "*": 2}, 4),
            ({"*": 2, "gpt-*": 3}, 3),
            ({"claude-*": 9}, 1),
            ({"GPT-4o*": 9}, 1),
            ({"gpt-4[a-o]*": 6}, 6),
            ({}, 1),
        ],
    )
    def test_the_exact_name_then_the_longest_glob_then_every_model(
        self, names: Mapping[str, int], expected: float
    ):
        prices = {n: Price(input_per_m_usd=p, output_per_m_usd=p) for n, p in names.items()}
        asked = Pricing(Usage(price=PLAIN, prices=prices))

        assert [asked.cost_of(self.STEP) for _ in range(2)] == [expected, expected]

    def test_the_name_of_an_agent_is_no_model(self):
        step = Step(kind="agent", name="gpt-4o", input_tokens=1_000_000)

        assert Pricing(Usage(prices={"gpt-4o": PLAIN, "*": PLAIN})).cost_of(step) is None
        assert Pricing(estimate=True).cost_of(step) is None

    @pytest.mark.parametrize("kind", ["llm", "tool", "agent", "custom"])
    def test_without_tokens_there_is_no_cost(self, kind: StepKind):
        assert cost(call(kind, name="search", model="gpt-4o"), HALF_CENT) is None

    def test_without_any_price_there_is_no_cost(self):
        assert Pricing().cost_of(self.STEP) is None

    @pytest.mark.parametrize(
        ("usage", "estimate", "expected"),
        [
            (None, False, False),
            (Usage(), False, False),
            (Usage(input_includes_cache=True), False, False),
            (Usage(price=PLAIN), False, True),
            (Usage(prices={"gpt-*": PLAIN}), False, True),
            (None, True, True),
        ],
    )
    def test_whether_there_is_a_source(
        self, *, usage: Usage | None, estimate: bool, expected: bool
    ):
        assert Pricing(usage, estimate=estimate).available is expected


class TestAPrice:
    @pytest.mark.parametrize("name", Price.__struct_fields__)
    @pytest.mark.parametrize("dollars", [-0.01, math.nan, math.inf])
    def test_is_never_negative(self, name: str, dollars: float):
        fields = {"input_per_m_usd": 1.0, "output_per_m_usd": 1.0, name: dollars}

        with pytest.raises(ValueError, match=rf"Price\.{name}: expected US dollars from 0 up, got"):
            Price(**fields)

    def test_is_read_from_a_table(self):
        table = {"price": {"input_per_m_usd": 3, "output_per_m_usd": 15}}

        assert msgspec.convert(table, Usage) == Usage(
            price=Price(input_per_m_usd=3, output_per_m_usd=15)
        )


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    load_estimate.cache_clear()
    yield
    load_estimate.cache_clear()


class TestEstimates:
    """The real table of genai-prices; only what a price list states for years is pinned."""

    @pytest.mark.parametrize(
        ("provider", "model", "input_usd"),
        [
            ("openai", "gpt-4o", 2.5),
            ("OpenAI", "gpt-4o-2024-08-06", 2.5),
            ("azure.ai.openai", "grok-3", 3),
            ("az.ai.openai", "grok-3", 3),
            ("azure.ai.inference", "grok-3", 3),
            ("az.ai.inference", "grok-3", 3),
            ("", "gpt-4o", 2.5),
            ("LangChain", "gpt-4o", 2.5),
            ("autogen", "gpt-4o", 2.5),
            ("crewai", "gpt-4o", 2.5),
            ("langgraph", "gpt-4o", 2.5),
            ("microsoft.agent_framework", "gpt-4o", 2.5),
            ("strands-agents", "gpt-4o", 2.5),
            ("anthropic", "claude-3-5-haiku-20241022", 0.8),
            ("aws.bedrock", "anthropic.claude-3-haiku-20240307-v1:0", 0.25),
            ("gcp.gemini", "gemini-2.0-flash", 0.1),
            ("gcp.gen_ai", "gemini-2.0-flash", 0.1),
            ("x_ai", "grok-3", 3),
        ],
    )
    def test_known_models(self, provider: str, model: str, input_usd: float):
        step = call(provider=provider, model=model, input_tokens=1_000_000)

        assert Pricing(estimate=True).cost_of(step) == pytest.approx(input_usd)

    @pytest.mark.parametrize(("budget_usd", "expected_usd"), [(None, 0), (1_000.0, 2.5)])
    def test_are_made_only_where_there_is_a_budget(
        self, budget_usd: float | None, expected_usd: float
    ):
        guard = LoopGuard(max_cost_usd=budget_usd)
        guard.record(call(provider="openai", model="gpt-4o", input_tokens=1_000_000))

        assert guard.stats().cost_usd == pytest.approx(expected_usd)

    def test_are_what_the_package_says_of_the_same_tokens(self):
        step = call(
            provider="anthropic",
            name="claude-sonnet-4-5",
            input_tokens=9_000,
            cache_read_tokens=100_000,
            cache_write_tokens=15_000,
            output_tokens=200,
            reasoning_tokens=150,
        )
        counts = genai_prices.Usage(
            input_tokens=124_000,
            cache_read_tokens=100_000,
            cache_write_tokens=15_000,
            output_tokens=200,
        )
        price = genai_prices.calc_price(counts, "claude-sonnet-4-5", provider_id="anthropic")
        found = Pricing(estimate=True).cost_of(step)

        assert found == float(price.total_price)
        assert found == pytest.approx((9_000 * 3 + 100_000 * 0.3 + 15_000 * 3.75 + 200 * 15) / 1e6)

    def test_a_count_that_the_package_refuses_has_no_cost(self):
        step = call(provider="openai", model="gpt-4o", input_tokens=10, cache_read_tokens=True)

        assert Pricing(estimate=True).cost_of(step) is None

    @pytest.mark.parametrize(
        ("provider", "model"),
        [
            ("openai", "no-such-model"),
            ("no-such-provider", "gpt-4o"),
            ("ollama", "llama3.1"),
            ("openai", ""),
            ("", ""),
            ("", "\ud800"),
            ("[", "gpt-4o"),
        ],
    )
    def test_what_is_not_in_the_table_has_no_cost(self, provider: str, model: str):
        asked = Pricing(estimate=True)
        step = call(provider=provider, model=model, input_tokens=5)

        assert [asked.cost_of(step) for _ in range(2)] == [None, None]

    def test_the_model_that_was_asked_for_where_the_other_is_unknown(self):
        step = call(provider="openai", model="ft:x", name="gpt-4o", input_tokens=1_000_000)

        assert Pricing(estimate=True).cost_of(step) == pytest.approx(2.5)

    def test_a_price_that_was_set_comes_first(self):
        step = call(provider="openai", model="gpt-4o", input_tokens=1_000_000)

        assert Pricing(Usage(prices={"gpt-4o": PLAIN}), estimate=True).cost_of(step) == 1
        assert Pricing(Usage(prices={"gpt-5": PLAIN}), estimate=True).cost_of(step) == 2.5

    def test_an_unknown_model_is_looked_up_once(self, monkeypatch: pytest.MonkeyPatch):
        asked: list[str] = []
        real = genai_prices.calc_price

        def counted(counts: object, model: str, *, provider_id: str | None = None) -> object:
            asked.append(model)
            return real(counts, model, provider_id=provider_id)

        monkeypatch.setattr(genai_prices, "calc_price", counted)
        load_estimate.cache_clear()
        try:
            estimates = Pricing(estimate=True)
            for _ in range(5):
                assert estimates.cost_of(call(model="mystery", input_tokens=5)) is None
        finally:
            load_estimate.cache_clear()

        assert asked.count("mystery") == 1

    @pytest.mark.usefixtures("without_package")
    def test_without_the_package_there_are_none(self):
        step = call(provider="openai", model="gpt-4o", input_tokens=1_000_000)

        assert Pricing(estimate=True).available is False
        assert Pricing(estimate=True).cost_of(step) is None
        assert Pricing(Usage(price=PLAIN), estimate=True).cost_of(step) == 1


def run(program: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    return ran.stdout.strip()


def test_the_package_is_imported_only_when_it_is_asked_for():
    program = """
import sys
from otel_loopguard.pricing import Price, Pricing, Usage
Pricing(Usage(price=Price(input_per_m_usd=1, output_per_m_usd=1)))
print("genai_prices" in sys.modules)
Pricing(estimate=True)
print("genai_prices" in sys.modules)
"""

    assert run(program).split() == ["False", "True"]


def test_nothing_is_fetched():
    # The package can keep its table up to date by itself; here it must not even try.
    program = """
import sys, threading
seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event.startswith("socket.") else None)
from otel_loopguard.pricing import Pricing
from otel_loopguard.steps import Step, StepKind
pricing = Pricing(estimate=True)
for model in ("gpt-4o", "no-such-model"):
    print(pricing.cost_of(Step(kind="llm", provider="openai", model=model, input_tokens=4_000_000)))
print(seen, threading.active_count())
"""

    assert run(program).splitlines() == ["10.0", "None", "[] 1"]
