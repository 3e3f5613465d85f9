"""Laws of the models in process, whoever asks them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.model_turns import ModelTurn, ToolCall
from otel_loopguard.testing import EndlessModel, ScriptedModel, ScriptEndedError, recording_tool

CALLS = st.builds(
    ToolCall,
    name=st.sampled_from("abc"),
    arguments=st.dictionaries(st.sampled_from("xy"), st.integers()),
    call_id=st.just("given"),
)
TURNS = st.builds(
    ModelTurn,
    text=st.text(max_size=5),
    calls=st.lists(CALLS, max_size=3).map(tuple),
    finish_reason=st.sampled_from(["", "stop", "length"]),
    input_tokens=st.integers(0, 100),
    output_tokens=st.integers(0, 100),
)


@contextmanager
def taking_turns() -> Generator[None]:
    """Let threads interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@given(st.lists(TURNS, max_size=60), st.integers(1, 8), st.integers(0, 4))
def test_a_script_is_played_once_and_in_order_to_any_number_of_threads(
    turns: list[ModelTurn], threads: int, more: int
):
    # Texts tell turns apart that are drawn alike.
    script = [ModelTurn(text=f"{n}", calls=turn.calls) for n, turn in enumerate(turns)]
    model = ScriptedModel(script)
    asked_by_each = len(script) // threads + 1 + more
    start = Barrier(threads)

    def ask() -> list[ModelTurn | None]:
        start.wait()
        return [answer(model) for _ in range(asked_by_each)]

    with taking_turns(), ThreadPoolExecutor(threads) as pool:
        answers = [each.result() for each in [pool.submit(ask) for _ in range(threads)]]
    played = [turn for answer in answers for turn in answer if turn is not None]
    assert sorted(played, key=lambda turn: int(turn.text)) == script
    for each in answers:
        # Each thread hears its share in the order of the script, and errors only after its end.
        heard = [turn for turn in each if turn is not None]
        assert heard == sorted(heard, key=lambda turn: int(turn.text))
        assert each[: len(heard)] == heard
    assert model.calls == threads * asked_by_each


def answer(model: ScriptedModel) -> ModelTurn | None:
    try:
        return model()
    except ScriptEndedError:
        return None


@given(st.lists(TURNS, max_size=12))
def test_a_script_that_one_asks_is_played_exactly(turns: list[ModelTurn]):
    model = ScriptedModel(turns)
    assert [model() for _ in turns] == turns
    assert answer(model) is None


@given(st.integers(1, 8), st.integers(1, 40))
def test_an_endless_model_gives_no_id_twice_and_tools_miss_no_execution(threads: int, each: int):
    model = EndlessModel("lookup", {"order": 7})

    @recording_tool
    def lookup(order: int) -> int:
        return order

    def ask() -> list[str | None]:
        ids: list[str | None] = []
        for _ in range(each):
            [call] = model().calls
            lookup(order=7)
            ids.append(call.call_id)
        return ids

    with taking_turns(), ThreadPoolExecutor(threads) as pool:
        ids = [i for given in [pool.submit(ask) for _ in range(threads)] for i in given.result()]
    assert max(Counter(ids).values()) == 1
    assert (model.calls, lookup.executions) == (threads * each, threads * each)
    assert len(lookup.calls) == min(100, threads * each)
