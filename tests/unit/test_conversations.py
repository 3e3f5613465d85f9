"""`scope = "conversation"`: what runs use up is carried over to the next run of the same talk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from otel_loopguard import Policy, conversations, guarded_run
from otel_loopguard.conversations import Conversations, conversation_of
from otel_loopguard.engine.rule_sets import Carried
from otel_loopguard.live_spans import record_of
from otel_loopguard.replay.recorded_spans import replay_spans
from otel_loopguard.spans import SpanRecord
from tests._tracing import Traced


def policy(scope: str = "conversation", **limits: Any) -> Policy:
    return Policy.from_mapping({"scope": scope, "limits": limits}, base=Policy.none())


def talk(
    process: Traced, conversation: str | None, turns: int = 2, *, name: str | None = None
) -> None:
    """Run an agent once, in a conversation."""
    attributes: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent"}
    if conversation is not None:
        attributes[name or "gen_ai.conversation.id"] = conversation
    with process.tracer.start_as_current_span("invoke_agent a", attributes=attributes):
        for _ in range(turns):
            with process.chat():
                pass


def refusals(process: Traced) -> float:
    return process.total("loopguard.violations", action="abort")


def test_runs_of_one_conversation_share_its_limits(process: Traced) -> None:
    process.guard(policy(max_llm_calls=5))
    for _ in range(2):
        talk(process, "one")
        talk(process, "other")
    assert refusals(process) == 0
    talk(process, "one")
    assert refusals(process) == 1
    talk(process, "one", turns=1)
    assert refusals(process) == 2, "what is used up stays used up"
    talk(process, "third", turns=5)
    assert refusals(process) == 2

    spans = [record_of(span) for span in process.spans]
    replayed = replay_spans(spans, policy(max_llm_calls=5), "file")
    assert [run.tripped for run in replayed] == [False] * 4 + [True, True, False]


@pytest.mark.parametrize("scope", ["run", "agent"])
def test_otherwise_each_run_has_its_own(process: Traced, scope: str) -> None:
    process.guard(policy(scope, max_llm_calls=3))
    for _ in range(3):
        talk(process, "one")

    assert refusals(process) == 0


def test_runs_without_a_conversation_share_nothing(process: Traced) -> None:
    process.guard(policy(max_llm_calls=3))
    for _ in range(3):
        talk(process, None)

    assert refusals(process) == 0


def test_a_span_around_the_agent_may_name_the_conversation(process: Traced) -> None:
    process.guard(policy(max_llm_calls=3))
    for _ in range(2):
        with process.tracer.start_as_current_span(
            "job", attributes={"gen_ai.conversation.id": "c"}
        ):
            talk(process, None)

    assert refusals(process) == 1


def test_a_guarded_run_is_of_the_conversation_of_its_first_span(process: Traced) -> None:
    process.guard(policy(max_llm_calls=3))
    for _ in range(2):
        with guarded_run():
            talk(process, "c")

    assert refusals(process) == 1


def test_a_block_that_is_left_while_its_spans_are_open_counts_too(process: Traced) -> None:
    process.guard(policy(max_llm_calls=3))
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c"}
    with guarded_run():
        left_open = [process.tracer.start_span("chat m", attributes=attributes) for _ in range(2)]
    talk(process, "c")

    assert refusals(process) == 1
    assert all(span.is_recording() for span in left_open)


def test_a_conversation_that_is_named_late_counts_for_the_next_run(process: Traced) -> None:
    process.guard(policy(max_llm_calls=3))
    with process.agent():
        for _ in range(2):
            with process.chat() as span:
                span.set_attribute("gen_ai.conversation.id", "c")
    talk(process, "c")

    assert refusals(process) == 1


def test_trips_and_what_rules_have_counted_end_with_the_run(process: Traced) -> None:
    rules = {"repeated_result": {"warn": 2, "abort": 3}}
    process.guard(
        Policy.from_mapping({"scope": "conversation", "rules": rules}, base=Policy.none())
    )
    for _ in range(2):
        with process.tracer.start_as_current_span(
            "invoke_agent a", attributes={"gen_ai.conversation.id": "c"}
        ):
            process.work(2)

    assert refusals(process) == 0


OPENINFERENCE = {"openinference.span.kind": "AGENT"}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.conversation.id": "c"}, "c"),
        ({"traceloop.association.properties.session_id": "c"}, "c"),
        ({"traceloop.association.properties.thread_id": "c"}, "c"),
        ({"langsmith.metadata.session_id": "c"}, "c"),
        ({"langsmith.metadata.thread_id": "c"}, "c"),
        ({"ai.telemetry.metadata.sessionId": "c"}, "c"),
        ({**OPENINFERENCE, "session.id": "c"}, "c"),
        ({**OPENINFERENCE, "session.id": "s", "gen_ai.conversation.id": "c"}, "c"),
        ({"session.id": "a visitor's"}, None),
        ({"gen_ai.conversation.id": ""}, None),
        ({"gen_ai.conversation.id": 7}, None),
        ({**OPENINFERENCE, "session.id": ""}, None),
        (OPENINFERENCE, None),
        ({}, None),
    ],
)
def test_names_of_a_conversation(attributes: Mapping[str, object], expected: str | None) -> None:
    record = SpanRecord(name="s", trace_id=1, span_id=1, attributes=attributes)

    assert conversation_of(record) == expected


def test_the_conversation_that_is_longest_unused_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "CONVERSATIONS", 2)
    kept = Conversations()
    spent: Callable[[float], Carried] = lambda seconds: Carried({}, seconds, Policy().settings)  # noqa: E731
    kept.keep("a", spent(1))
    kept.keep("b", spent(2))
    assert kept.carried("a") == spent(1)
    kept.keep("c", spent(3))
    kept.keep("c", spent(4))

    assert [kept.carried(each) for each in ("a", "b", "c", None)] == [
        spent(1),
        None,
        spent(4),
        None,
    ]
    assert kept.evicted == 1
    kept.keep(None, spent(5))
    kept.keep("d", None)
    assert kept.evicted == 1


def test_what_is_forgotten_is_counted(process: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "CONVERSATIONS", 2)
    process.guard(policy(max_llm_calls=3))
    for number in range(5):
        talk(process, f"c{number}")

    assert process.total("loopguard.evictions", store="conversations") == 3
