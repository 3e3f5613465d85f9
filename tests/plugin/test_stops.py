"""What counts as a stop, and how much a run has done, in sessions of their own."""

from __future__ import annotations

import re

from tests.plugin._sessions import LOOP, SPANS, Sessions


def test_a_failure_while_a_stop_is_handled_is_a_failure(sessions: Sessions) -> None:
    session = sessions.run(
        SPANS
        + """
from otel_loopguard import LoopGuard, LoopGuardError, Step

@pytest.mark.loopguard(max_llm_calls=3, trips="llm_call_budget")
def test_assertion(model):
    try:
        agent(model)
    except RunAborted as error:
        assert error.report.model_calls == 99

@pytest.mark.loopguard(max_llm_calls=3, trips="llm_call_budget")
def test_mistake(model):
    try:
        agent(model)
    except RunAborted:
        {}["missing"]

@pytest.mark.loopguard(max_llm_calls=3, trips="llm_call_budget")
def test_outcome(model):
    try:
        agent(model)
    except RunAborted:
        pytest.fail("no such thing")

@pytest.mark.loopguard(max_llm_calls=3, trips="llm_call_budget")
def test_wrapped(model):
    try:
        agent(model)
    except RunAborted as error:
        raise RuntimeError("the agent failed")

@pytest.mark.loopguard(trips="llm_call_budget")
def test_another_rule():
    a = LoopGuard(Policy.none(), max_llm_calls=1)
    for _ in range(2):
        a.check(Step(kind="llm", name="m"))
    b = LoopGuard(Policy.none(), max_tool_calls=1)
    b.check(Step(kind="tool", name="t"))
    raise LoopGuardError(b.check(Step(kind="tool", name="t")))

@pytest.mark.loopguard
def test_unheard():
    guard = LoopGuard(Policy.none(), max_llm_calls=0)
    raise LoopGuardError(guard.preview(Step(kind="llm", name="m")))

@pytest.mark.loopguard(policy=Policy.none(), max_llm_calls=3)
def test_asserted(loopguard, model):
    def run():
        try:
            agent(model)
        except RunAborted:
            {}["missing"]
    loopguard.assert_stops(run, model=model)
"""
    )
    assert session.outcomes == {
        "test_assertion": "failed",
        "test_mistake": "failed",
        "test_outcome": "failed",
        "test_wrapped": "passed",
        "test_another_rule": "failed",
        "test_unheard": "failed",
        "test_asserted": "failed",
    }, session.text
    assert "== 99" in session.failure_of("test_assertion")
    assert "the run raised KeyError('missing')" in session.failure_of("test_asserted")


def test_runs_of_one_engine_are_told_apart(sessions: Sessions) -> None:
    session = sessions.run(
        LOOP
        + """
def started(model, guard):
    guard.start()
    return agent(model, guard)

def test_the_first_refusal_is_none_of_the_second_run(loopguard, model):
    guard = five()
    loopguard.assert_stops(lambda: started(model, guard), model=model, model_calls=5)
    done = ScriptedModel(["done"])
    loopguard.assert_completes(lambda: started(done, guard), model=done)

def test_reset_is_an_end(loopguard, model):
    guard = five()
    def run():
        try:
            agent(model, guard)
        finally:
            guard.reset()
    loopguard.assert_stops(run, rule="llm_call_budget", model_calls=5)

def test_all_runs_count(loopguard):
    def run():
        for calls in (5, 1):
            agent(ScriptedModel([("lookup", {"order": 1})] * (calls - 1) + ["done"]), five())
    loopguard.assert_completes(run, model_calls=6, tool_executions=4)

def test_unheeded(loopguard):
    guard = five()
    model = ScriptedModel([("lookup", {"order": n}) for n in range(40)] + ["done"])
    def run():
        while True:
            guard.check(Step(kind="llm", name="m"))
            if not model().calls:
                return
    loopguard.assert_stops(run, model=model)
"""
    )
    assert session.outcomes == {
        "test_the_first_refusal_is_none_of_the_second_run": "passed",
        "test_reset_is_an_end": "passed",
        "test_all_runs_count": "passed",
        "test_unheeded": "failed",
    }, session.text


def test_runs_of_spans_are_counted_together(sessions: Sessions) -> None:
    session = sessions.run(
        SPANS
        + """
from otel_loopguard import guarded_run

def two():
    for calls in (5, 1):
        agent(ScriptedModel([("lookup", {"order": 1})] * (calls - 1) + ["done"]))

@pytest.mark.loopguard(policy=Policy.none(), max_llm_calls=50)
def test_side_by_side(loopguard):
    loopguard.assert_completes(two, model_calls=6)

@pytest.mark.loopguard(policy=Policy.none(), max_llm_calls=50)
def test_one_in_another(loopguard):
    def run():
        with guarded_run("outer"), guarded_run("inner"):
            agent(ScriptedModel([("lookup", {"order": 1})] * 4 + ["done"]))
    loopguard.assert_completes(run, model_calls=5)

def test_no_tools(loopguard, model_server):
    loopguard.assert_completes(lambda: None, tool_executions=0)
"""
    )
    assert session.outcomes == {
        "test_side_by_side": "passed",
        "test_one_in_another": "passed",
        "test_no_tools": "passed",
    }, session.text


def test_the_time_of_a_marked_test_ends(sessions: Sessions) -> None:
    """A guard that does not reach the client must not hang the session."""
    session = sessions.run(
        """
import json, unittest, urllib.request
import pytest

@pytest.mark.loopguard(max_llm_calls=5, trips="llm_call_budget", timeout=0.3)
def test_unreached(model_server):
    body = json.dumps({"model": "endless", "messages": [{"role": "user", "content": "go"}]})
    while True:
        request = urllib.request.Request(model_server.url + "/chat/completions", body.encode())
        request.add_header("content-type", "application/json")
        urllib.request.urlopen(request).close()

@pytest.mark.loopguard(timeout=-1)
def test_no_time(): ...

@pytest.mark.loopguard
class TestOfUnittest(unittest.TestCase):
    def test_old(self): ...
"""
    )
    assert session.outcomes == {
        "test_unreached": "failed",
        "test_no_time": "error",
        "test_old": "passed",
    }, session.text
    assert "HTTP Error 400" in session.failure_of("test_unreached")
    assert "timeout=-1 is no time" in session.failure_of("test_no_time")


def test_a_fixture_of_the_same_name_is_told_of(sessions: Sessions) -> None:
    session = sessions.run(
        """
import pytest

@pytest.fixture
def loopguard():
    return None

@pytest.mark.loopguard(trips="llm_call_budget")
def test_marked(): ...
"""
    )
    assert session.outcomes == {"test_marked": "failed"}
    assert "another fixture is named `loopguard`" in session.failure_of("test_marked")


def test_evidence_needs_a_file(sessions: Sessions) -> None:
    session = sessions.run("def test_any(): ...", "--loopguard-evidence=.")
    assert "expected a file, got a directory" in session.text
    assert session.outcomes == {}


def test_what_ends_a_test_is_not_taken_for_the_end_of_a_run(sessions: Sessions) -> None:
    session = sessions.run(
        """
import time
import pytest

def test_skip(loopguard):
    loopguard.assert_completes(lambda: pytest.skip("no key"))

def test_still_runs(loopguard):
    loopguard.assert_stops(lambda: time.sleep(6), timeout=0.1)

def test_interrupt(loopguard):
    def run():
        raise KeyboardInterrupt
    loopguard.assert_stops(run, timeout=None)

def test_after(): ...
"""
    )
    assert session.outcomes == {"test_still_runs": "failed"}
    assert "KeyboardInterrupt" in session.text
    assert "1 failed, 1 skipped" in session.text
    assert re.search(r"came:     still running after [3-5]\.\d s\n", session.text)


def test_failures_that_a_server_plays_are_calls(sessions: Sessions) -> None:
    session = sessions.run(
        """
import json, urllib.error, urllib.request

def test_failing(loopguard, model_server):
    model_server.play("http_error:429")
    def run():
        body = json.dumps({"model": "endless", "messages": [{"role": "user", "content": "go"}]})
        request = urllib.request.Request(model_server.url + "/chat/completions", body.encode())
        request.add_header("content-type", "application/json")
        for _ in range(3):
            try:
                urllib.request.urlopen(request)
            except urllib.error.HTTPError as error:
                error.close()
    loopguard.assert_completes(run, model_calls=3)
"""
    )
    assert session.outcomes == {"test_failing": "passed"}, session.text
