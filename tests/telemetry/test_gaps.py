"""What steps did not show, as a counter: told when their run is over."""

from __future__ import annotations

import pytest

from otel_loopguard import bounded_names, guarded_run
from otel_loopguard.gaps import KINDS
from tests._tracing import Traced

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
CHAT = {"gen_ai.operation.name": "chat"}


def gaps(process: Traced) -> dict[str, float]:
    """Return what was missing how often, for the agent."""
    return {
        str(labels["loopguard.gap"]): value
        for labels, value in process.counts("loopguard.gaps")
        if labels.get("gen_ai.agent.name") == "scout"
    }


def blind_turn(process: Traced) -> None:
    for name, attributes in (("chat m", CHAT), ("execute_tool search", TOOL)):
        with process.tracer.start_as_current_span(name, attributes=attributes):
            pass


def test_series_exist_at_zero_from_the_start(process: Traced) -> None:
    process.guard()

    zero = [({"loopguard.gap": gap, "loopguard.step.kind": kind}, 0) for gap, kind in KINDS.items()]
    assert process.counts("loopguard.gaps") == zero


def test_gaps_are_told_when_the_run_is_over(process: Traced) -> None:
    process.guard()
    with process.agent():
        for _ in range(3):
            blind_turn(process)
        assert set(gaps(process).values()) == {0}, "nothing is added for each span"

    none = {"tool_span": 0}
    assert gaps(process) == {"arguments": 3, "result": 3, "usage": 3, "requested_calls": 3} | none


def test_a_run_that_no_span_ends_tells_them_too(process: Traced) -> None:
    process.guard()
    with guarded_run():
        blind_turn(process)

    assert process.total("loopguard.gaps", gap="arguments") == 1


def test_an_agent_that_shows_itself_has_none(process: Traced) -> None:
    process.guard()
    with process.agent():
        process.work(3)

    assert gaps(process) == dict.fromkeys(KINDS, 0)


def test_what_failed_has_no_result_and_no_usage_to_show(process: Traced) -> None:
    process.guard()
    with process.agent():
        for name, attributes in (("chat m", CHAT), ("execute_tool search", TOOL)):
            with (
                pytest.raises(TimeoutError),
                process.tracer.start_as_current_span(name, attributes=attributes),
            ):
                raise TimeoutError

    none = dict.fromkeys(("result", "usage", "requested_calls", "tool_span"), 0)
    assert gaps(process) == {"arguments": 1} | none


def test_calls_without_a_span_have_gaps_as_well(process: Traced) -> None:
    process.guard()
    with process.agent():
        for _ in range(2):
            with process.chat():
                pass

    assert gaps(process)["result"] == 1, "no input shows what came of the first turn's call"
    assert gaps(process)["arguments"] == 0
    assert gaps(process)["tool_span"] == 2, "the last turn's call as well: the first one was made"


def test_a_call_without_a_span_is_none_where_another_tool_has_one(process: Traced) -> None:
    """What has no span there is the framework's way to answer, or to hand over."""
    process.guard()
    with process.agent():
        for _ in range(2):  # the first turn's call was made: the agent has asked again
            with process.chat():
                pass
        process.work(1)
        with process.chat(asks=False):
            pass

    assert gaps(process)["tool_span"] == 0


def test_a_call_that_was_asked_for_at_the_end_may_be_the_answer(process: Traced) -> None:
    process.guard()
    with process.agent(), process.chat():
        pass

    assert gaps(process)["tool_span"] == 0


def test_agents_are_told_apart_up_to_a_bound(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_names, "NAMES", 1)
    process.guard()
    for name in ("scout", "cook", "clerk"):
        with process.agent(name):
            blind_turn(process)

    agents = {
        str(labels["gen_ai.agent.name"]): value
        for labels, value in process.counts("loopguard.gaps")
        if labels["loopguard.gap"] == "arguments" and "gen_ai.agent.name" in labels
    }
    assert agents == {"scout": 1, "_OTHER": 2}
