"""The pytest plugin in sessions of its own: what passes, what fails, and what is said of it."""

from __future__ import annotations

from tests.plugin._sessions import LOOP, SPANS, Sessions


def test_runs_of_loops_that_ask_an_engine(sessions: Sessions) -> None:
    session = sessions.run(
        LOOP
        + """
def test_stopped(loopguard, model):
    report = loopguard.assert_stops(
        lambda: agent(model, five()),
        model=model, tools=[lookup], model_calls=5, tool_executions=5, rule="llm_call_budget",
    )
    assert report.rule == "llm_call_budget"
    assert [each.rule for each in loopguard.violations] == ["llm_call_budget"]
    assert loopguard.decisions[-1].rule == "llm_call_budget"

def test_one_call_before(loopguard):
    calls = [("lookup", {"order": n}) for n in range(4)]
    model = ScriptedModel([*calls, "shipped"])
    assert loopguard.assert_completes(
        lambda: agent(model, five()), model=model, tools=[lookup], model_calls=5, tool_executions=4,
    ) == "shipped"

def test_without_guard(loopguard, model):
    run = lambda: agent(model)
    loopguard.assert_stops(run, model=model, tools=[lookup], model_calls=5, timeout=0.2)

def test_other_count(loopguard, model):
    loopguard.assert_stops(lambda: agent(model, five()), model=model, tools=[lookup], model_calls=6)

def test_other_rule(loopguard, model):
    loopguard.assert_stops(lambda: agent(model, five()), model=model, rule="repeated_result")

def test_ends_by_itself(loopguard):
    model = ScriptedModel(["done"])
    loopguard.assert_stops(lambda: agent(model, five()), model=model)

def test_raises_by_itself(loopguard):
    loopguard.assert_stops(lambda: agent(ScriptedModel([]), five()))

def test_does_not_complete(loopguard, model):
    loopguard.assert_completes(lambda: agent(model, five()), model=model)

def test_in_the_calling_thread(loopguard, model):
    import threading
    seen = []
    def run():
        seen.append(threading.current_thread())
        agent(model, five())
    loopguard.assert_stops(run, timeout=None)
    assert seen == [threading.current_thread()]

def test_counts_nothing(loopguard):
    loopguard.assert_stops(lambda: None, model=object())
"""
    )

    assert session.outcomes == {
        "test_stopped": "passed",
        "test_one_call_before": "passed",
        "test_without_guard": "failed",
        "test_other_count": "failed",
        "test_other_rule": "failed",
        "test_ends_by_itself": "failed",
        "test_raises_by_itself": "failed",
        "test_does_not_complete": "failed",
        "test_in_the_calling_thread": "passed",
        "test_counts_nothing": "failed",
    }
    without = session.failure_of("test_without_guard")
    assert "the run was still going after 0.2 s; " in without
    assert (
        "expected: stopped by its guard after 5 model calls\ncame:     ended from outside after 0."
        in without
    )
    assert "\n├─ EndlessModel('lookup', name='endless-model'): " in without
    assert "\n│  ├─ ... 99 more like this\n" in without
    assert "check: no guard is installed: call otel_loopguard.install(" in without
    more_time = "check: if it had not come far after 0.2 s, give it more time: timeout=1; "
    assert more_time in without
    counted = session.failure_of("test_other_count")
    assert "AssertionError: 5 model calls, not 6\n" in counted
    assert "more time" not in counted
    assert "└─ loop with an engine of its own: 5 model calls, 5 tool calls\n" in counted
    assert "   └─ ... 4 more like these 2\n" in counted
    assert "llm_call_budget: llm step at step 11: 6 against a threshold of 5 (stop)\n" in counted
    assert "stopped by llm_call_budget, not by repeated_result" in session.failure_of(
        "test_other_rule"
    )
    assert "the run was not stopped by a guard" in session.failure_of("test_ends_by_itself")
    raised = session.failure_of("test_raises_by_itself")
    assert "ScriptEndedError: ScriptedModel(0 turns" in raised
    assert "came:     ScriptEndedError raised" in raised
    assert "the run was stopped by llm_call_budget" in session.failure_of("test_does_not_complete")
    assert "counts no calls; expected a `model_server`" in session.failure_of("test_counts_nothing")
    assert session.summary == [
        "loopguard: 5 runs stopped (5 llm_call_budget), 3 completed, 1 guard missing"
    ]


def test_agents_whose_spans_are_watched(sessions: Sessions) -> None:
    session = sessions.run(
        SPANS
        + """
@pytest.fixture
def guard():
    guard = LoopGuardSpanProcessor(mode="enforce")
    provider.add_span_processor(guard)
    yield guard
    guard.shutdown()

def test_stopped(guard, loopguard, model):
    report = loopguard.assert_stops(
        lambda: agent(model),
        model=model, tools=[lookup], model_calls=5, tool_executions=5, rule="repeated_result",
    )
    assert report.status == "aborted"
    assert [each.rule for each in loopguard.reports] == ["repeated_result"]
    names = [span.name for span in loopguard.spans]
    assert names.count("chat m") == 6 and names[-1] == "invoke_agent scout"

def test_calm(guard, loopguard):
    model = ScriptedModel([("lookup", {"order": 7}), "shipped"])
    loopguard.assert_completes(
        lambda: agent(model), model=model, tools=[lookup], model_calls=2, tool_executions=1
    )
    assert loopguard.violations == ()

def test_removed(loopguard, model):
    loopguard.assert_stops(lambda: agent(model), model=model, model_calls=5, timeout=0.2)

def test_without_contents(loopguard, model):
    loopguard.assert_stops(lambda: agent(model), model=model, timeout=0.2)

def test_on_another_provider(loopguard, model):
    elsewhere = TracerProvider()
    guard = LoopGuardSpanProcessor(mode="enforce")
    elsewhere.add_span_processor(guard)
    try:
        loopguard.assert_stops(lambda: agent(model), model=model, timeout=0.2)
    finally:
        guard.shutdown()

def test_observes(loopguard, model):
    guard = LoopGuardSpanProcessor(mode="observe")
    provider.add_span_processor(guard)
    try:
        loopguard.assert_stops(lambda: agent(model), model=model, timeout=0.2)
    finally:
        guard.shutdown()

def test_nothing_in_force(loopguard, model):
    guard = LoopGuardSpanProcessor(Policy.none(), mode="enforce")
    provider.add_span_processor(guard)
    try:
        loopguard.assert_stops(lambda: agent(model), model=model, timeout=0.2)
    finally:
        guard.shutdown()

def test_no_model_spans(guard, loopguard, model):
    def run():
        while True:
            with tracer.start_as_current_span("work"):
                model()
    loopguard.assert_stops(run, model=model, timeout=0.2)

def test_no_spans(guard, loopguard, model):
    def run():
        while True:
            model()
    loopguard.assert_stops(run, model=model, timeout=0.2)
"""
    )

    assert {name for name, outcome in session.outcomes.items() if outcome == "passed"} == {
        "test_stopped",
        "test_calm",
    }
    removed = session.failure_of("test_removed")
    assert "\n└─ agent scout: " in removed
    assert "   ├─ model m\n   ├─ tool lookup(#" in removed
    assert " more like these 2\n" in removed
    assert "check: no guard is installed: " in removed
    assert "order" not in session.text.replace('("lookup", {"order": 7})', "").replace(
        'EndlessModel("lookup", {"order": 7})', ""
    ), "contents are shown to nobody who has not asked for them"
    elsewhere = session.failure_of("test_on_another_provider")
    assert "check: a guard is there, but saw none of these spans: " in elsewhere
    observes = session.failure_of("test_observes")
    assert "   <- repeated_result: 5 against 5, step 10\n" in observes
    assert "check: guard in observe mode: repeated_result tripped, and nothing was " in observes
    nothing = session.failure_of("test_nothing_in_force")
    assert "the guard saw the run, and no rule tripped: " in nothing
    unknown = session.failure_of("test_no_model_spans")
    assert "check: the guard saw no model spans\n" in unknown
    assert "check: blind: none of " in unknown
    assert "check: the guard saw no model spans, for there are none: " in session.failure_of(
        "test_no_spans"
    )
    stopped, others = "1 run stopped (1 repeated_result)", "1 tripped and not stopped"
    assert session.summary == [f"loopguard: {stopped}, 1 completed, {others}, 5 guards missing"]


def test_contents_are_shown_to_those_who_ask(sessions: Sessions) -> None:
    source = (
        SPANS
        + """
def test_removed(loopguard, model):
    loopguard.assert_stops(lambda: agent(model), model=model, timeout=0.2)
"""
    )

    shown = sessions.run(source, "--loopguard-contents").failure_of("test_removed")

    assert """tool lookup({"order":7}) = "not yet"\n""" in shown
