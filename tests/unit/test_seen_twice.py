"""One call that several spans show, and several calls that look like one."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Mapping
from typing import Any

import pytest

from otel_loopguard import Policy
from otel_loopguard.decisions import RunReport
from otel_loopguard.slots import CURRENT
from otel_loopguard.spans import SpanRecord
from otel_loopguard.tracker import RunTracker

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
MODEL = {"gen_ai.operation.name": "chat"}
USED = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}


def tool(name: str, call_id: str | None = None) -> Mapping[str, object]:
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return called if call_id is None else {**called, "gen_ai.tool.call.id": call_id}


def asks(*calls: tuple[str, str]) -> Mapping[str, object]:
    parts: list[dict[str, object]] = [
        {"type": "tool_call", "id": call_id, "name": name, "arguments": {}}
        for name, call_id in calls
    ]
    turn = {"role": "assistant", "parts": parts, "finish_reason": "tool_call"}
    return {**MODEL, **USED, "gen_ai.output.messages": json.dumps([turn])}


def told(*call_ids: str) -> Mapping[str, object]:
    parts = [{"type": "tool_call_response", "id": each, "response": "ok"} for each in call_ids]
    return {"gen_ai.input.messages": json.dumps([{"role": "tool", "parts": parts}])}


def says(text: str) -> Mapping[str, object]:
    parts = [{"type": "text", "content": text}]
    return {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": parts}])}


class Scene:
    """Spans of one trace, told of live or as a recording; times are counted up."""

    def __init__(self, policy: Policy | None = None, *, live: bool) -> None:
        self.tracker = RunTracker(policy or Policy(), live=live)
        self._live = live
        self._shown: dict[int, tuple[Mapping[str, object], int | None, str]] = {}
        self._scopes: dict[int, str] = {}
        self._now = 1_000
        self._context = contextvars.Context()
        self._context.run(CURRENT.set, None)
        self.report: RunReport | None = None

    def start(
        self,
        span: int,
        shows: Mapping[str, object],
        parent: int | None = 0,
        name: str = "s",
        *,
        scope: str = "",
    ) -> None:
        self._shown[span] = shows, parent, name
        self._scopes[span] = scope
        self._tell(span, is_end=False)

    def end(self, span: int, shows: Mapping[str, object] | None = None) -> None:
        before, parent, name = self._shown[span]
        self._shown[span] = {**before, **(shows or {})}, parent, name
        self._tell(span, is_end=True)

    def whole(self, span: int, shows: Mapping[str, object], parent: int | None = 0) -> None:
        self.start(span, {k: v for k, v in shows.items() if "messages" not in k}, parent)
        self.end(span, shows)

    def _tell(self, span: int, *, is_end: bool) -> None:
        self._now += 1_000
        shows, parent, name = self._shown[span]
        record = SpanRecord(
            name=name,
            trace_id=1,
            span_id=span + 1,
            parent_id=None if parent is None else parent + 1,
            attributes=shows,
            scope=self._scopes[span],
            started_ns=self._now - 500 if is_end else self._now,
            ended_ns=self._now if is_end else None,
        )
        hear = self.tracker.ended if is_end else self.tracker.started
        verdict = self._context.run(hear, record)
        if verdict is not None and verdict.report is not None:
            self.report = verdict.report


@pytest.fixture(params=[True, False], ids=["live", "not-live"])
def scene(request: pytest.FixtureRequest) -> Scene:
    made = Scene(live=bool(request.param))
    made.start(0, AGENT, None)
    return made


def over(scene: Scene) -> RunReport:
    scene.end(0)
    assert scene.report is not None
    return scene.report


def counts(report: RunReport) -> tuple[int, int, int]:
    return report.model_calls, report.tool_calls, report.input_tokens


def test_a_retry_inside_a_framework_s_span_is_a_request_of_its_own(scene: Scene) -> None:
    both: dict[str, Any] = {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 10}
    scene.start(1, MODEL)
    scene.whole(2, {**MODEL, "error.type": "Timeout"}, 1)
    scene.whole(3, asks(("search", "c1")), 1)
    scene.end(1, {**asks(("search", "c1")), **both})
    scene.whole(4, {**asks(("search", "c2")), **told("c1")})

    assert counts(over(scene)) == (3, 2, 20), "c1 was answered, c2 was asked for last"


def test_servers_may_give_each_answer_the_same_id(scene: Scene) -> None:
    for number in range(1, 4):
        scene.whole(number, {**MODEL, **USED, "gen_ai.response.id": "chatcmpl-1"})

    assert counts(over(scene)) == (3, 0, 30)


def test_a_tool_that_asks_a_model_may_be_called_by_it_again(scene: Scene) -> None:
    scene.start(1, tool("delegate", "c1"))
    scene.whole(2, {**MODEL, **USED}, 1)
    scene.whole(3, tool("delegate", "c2"), 1)
    scene.end(1)

    assert over(scene).tool_calls == 1, "the outer call runs the inner one: it is no execution"


def test_a_wrapper_around_a_tool_is_the_same_call(scene: Scene) -> None:
    scene.start(1, tool("srv.search"))
    scene.whole(2, tool("search"), 1)
    scene.end(1)

    assert over(scene).tool_calls == 1


def test_branches_side_by_side_wait_for_their_own_tools(scene: Scene) -> None:
    for number in range(1, 40, 10):
        scene.whole(number, {**asks(("search", f"c{number}")), **says("Go.")})
    for number in range(1, 40, 10):
        scene.whole(number + 1, tool("search", f"c{number}"))
        scene.whole(number + 2, {**asks(("read", f"d{number}")), **told(f"c{number}")})
        scene.whole(number + 3, tool("read", f"d{number}"))

    assert over(scene).tool_calls == 8


def test_a_forced_call_that_nobody_makes_is_an_answer(scene: Scene) -> None:
    for number in range(1, 10):
        scene.whole(number, {**asks(("classify", f"c{number}")), **says(f"Item {number}?")})
    report = over(scene)

    assert report.tool_calls == 0
    assert [each for each in report.violations if each.action == "abort"] == []


def test_a_span_named_as_the_tool_hides_no_calls() -> None:
    scene = Scene(Policy.none().with_limits(max_tool_calls=3), live=True)
    scene.start(0, {}, None, "POST /search")
    for number in range(1, 7):
        scene.whole(number, {**asks(("search", f"c{number}")), **told(f"c{number - 1}")})
    report = over(scene)

    assert (report.rule, report.tool_calls) == ("tool_call_budget", 6)


def test_what_was_asked_for_last_is_counted_and_not_judged() -> None:
    scene = Scene(Policy.none().with_limits(max_tool_calls=2), live=True)
    scene.start(0, {}, None)
    for number in range(1, 4):
        scene.whole(number, {**asks(("search", f"c{number}")), **told(f"c{number - 1}")})
    report = over(scene)

    assert (report.rule, report.tool_calls) == (None, 3)


ECHO = "com.anthropic.sdk.python"
OTHER = "openinference.instrumentation.anthropic"


@pytest.mark.parametrize(
    ("scopes", "calls"),
    [
        pytest.param([ECHO] * 8, 8, id="its-own-alone"),
        pytest.param([OTHER, ECHO], 1, id="beside-another"),
        pytest.param([OTHER, ECHO, OTHER, ECHO], 2, id="each-beside-another"),
        pytest.param([OTHER, OTHER, ECHO, ECHO], 2, id="all-beside-the-others"),
    ],
)
def test_a_client_that_echoes_others_does_not_echo_itself(
    scene: Scene, scopes: list[str], calls: int
) -> None:
    for number, scope in enumerate(scopes, start=1):
        scene.start(number, MODEL, scope=scope)
    for number in range(1, len(scopes) + 1):
        scene.end(number, {**MODEL, **USED})

    report = over(scene)
    assert report.model_calls == calls
    if OTHER not in scopes:
        assert report.input_tokens == 10 * calls
