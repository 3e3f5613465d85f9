"""Calls that the code which makes them asks about: what is refused, and what counts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import copy_context
from itertools import count
from typing import Any

import pytest
from opentelemetry.context import attach
from opentelemetry.trace import Span, set_span_in_context

from otel_loopguard import LoopGuardSpanProcessor, Policy, RunAborted, RunInterrupted, guarded_run
from otel_loopguard.decisions import RunReport
from otel_loopguard.integrations._integration import Integration
from otel_loopguard.places import CALLS
from otel_loopguard.registry.names import EVENT_VIOLATION, VETOABLE
from tests._tracing import Traced

IDS = count()
THREE_EQUAL = Policy.none().with_limits(max_repeated_calls=3)


@pytest.fixture
def framework() -> Integration:
    return Integration("a framework")


def report_of(run: guarded_run) -> RunReport:
    assert run.report is not None
    return run.report


def installed(
    process: Traced, framework: Integration, policy: Policy | None = None, **options: object
) -> LoopGuardSpanProcessor:
    guard = process.guard(policy, **({"mode": "enforce"} | options))
    framework.install(guard)
    return guard


def tool(process: Traced, *, shown: bool) -> AbstractContextManager[Span]:
    """Return the span of a tool call as instrumentations without content have it, or another."""
    if not shown:
        return process.tracer.start_as_current_span("node")
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    return process.tracer.start_as_current_span("execute_tool search", attributes=attributes)


@contextmanager
def late(process: Traced) -> Generator[None]:
    """Make the span of a tool call that shows only at its end what is called, as Haystack's do."""
    with process.tracer.start_as_current_span("haystack.agent.step.tool") as span:
        yield
        span.set_attribute("haystack.tool.name", "search")


def call(process: Traced, framework: Integration, way: str, number: int = 0) -> bool:
    """Make a tool call of a framework; say whether it was made."""
    asked = framework.calling("search", {"q": "x", "page": number}, f"call {next(IDS)}")
    made = False
    if way in ("asks-inside", "asks-inside-late"):  # its span is there when the framework asks
        shown = late(process) if way == "asks-inside-late" else tool(process, shown=True)
        with shown, asked as inside:
            made = inside.refusal is None
            inside.result = "nothing" if made else inside.result
        return made
    with asked as around:
        if around.refusal is None:
            is_late = way == "asks-before-late"
            with late(process) if is_late else tool(process, shown=way == "asks-before"):
                made = True
            around.result = "nothing"
    return made


@pytest.mark.parametrize(
    "way", ["asks-inside", "asks-inside-late", "asks-before", "asks-before-late", "no-span"]
)
class TestToolCalls:
    def test_a_repetition_is_refused_before_it_is_made_without_content_on_spans(
        self, process: Traced, framework: Integration, way: str
    ) -> None:
        installed(process, framework, THREE_EQUAL)
        with guarded_run() as run, process.agent():
            made = [call(process, framework, way) for _ in range(6)]

        report = report_of(run)
        assert made == [True] * 3 + [False] * 3
        assert (report.rule, report.tool_calls, report.status) == (
            "repeated_call_limit",
            3,
            "aborted",
        )
        [trip] = report.violations
        assert (trip.phase, trip.step, trip.tool) == ("pre", 4, "search")
        assert len(report.open_call_ids) == 3, "the calls that nobody has answered"
        assert process.total("loopguard.aborts", abort__hook="integration", abort__result="ok") == 1
        assert process.total("loopguard.errors") == 0
        assert [on for on, name, _ in process.events() if name == EVENT_VIOLATION]

    def test_each_call_counts_once_and_its_result_is_known(
        self, process: Traced, framework: Integration, way: str
    ) -> None:
        installed(process, framework)
        with guarded_run() as run, process.agent():
            made = [call(process, framework, way) for _ in range(7)]

        report = report_of(run)
        assert made == [True] * 5 + [False] * 2
        assert (report.rule, report.tool_calls) == ("repeated_result", 5)
        # A call whose span is there before it is asked about has been attempted.
        assert report.steps == (7 if way.startswith("asks-inside") else 5)

    def test_different_calls_are_no_repetition(
        self, process: Traced, framework: Integration, way: str
    ) -> None:
        installed(process, framework, THREE_EQUAL)
        with guarded_run() as run, process.agent():
            made = [call(process, framework, way, number) for number in range(9)]

        assert all(made)
        assert (report_of(run).violations, report_of(run).tool_calls) == ((), 9)
        assert report_of(run).open_call_ids == ()

    def test_a_limit_on_calls_is_exact(
        self, process: Traced, framework: Integration, way: str
    ) -> None:
        installed(process, framework, Policy.none().with_limits(max_tool_calls=2))
        with guarded_run() as run, process.agent():
            made = [call(process, framework, way, number) for number in range(4)]

        assert made == [True, True, False, False]
        assert report_of(run).tool_calls == 2

    @pytest.mark.parametrize("options", [{"mode": "observe"}, {"abort": ("gate",)}])
    def test_nothing_is_refused_unless_integrations_are_to_stop_runs(
        self, process: Traced, framework: Integration, way: str, options: dict[str, object]
    ) -> None:
        installed(process, framework, THREE_EQUAL, **{"mode": None} | options)
        with guarded_run() as run, process.agent():
            made = [call(process, framework, way) for _ in range(6)]
            assert framework.refusal() is None

        assert all(made)
        assert (report_of(run).rule, report_of(run).tool_calls) == ("repeated_call_limit", 6)
        assert process.total("loopguard.aborts", abort__hook="integration") == 0


class TestCallsAtOnce:
    def test_equal_calls_are_calls_of_their_own(
        self, process: Traced, framework: Integration
    ) -> None:
        installed(process, framework, THREE_EQUAL)
        with guarded_run() as run, process.agent():
            contexts = [copy_context() for _ in range(5)]
            calls = [framework.calling("search", {"q": "x"}) for _ in contexts]
            begun = zip(contexts, calls, strict=True)
            made = [each.run(call.begin).refusal is None for each, call in begun]
            for each, call in zip(contexts, calls, strict=True):
                each.run(call.end, "nothing")
        assert made == [True] * 3 + [False] * 2
        assert report_of(run).tool_calls == 3

    @pytest.mark.parametrize("shown", [True, False], ids=["in-a-span", "no-span"])
    def test_a_call_that_two_frameworks_tell_of_counts_once(
        self, process: Traced, framework: Integration, *, shown: bool
    ) -> None:
        protocol = Integration("a protocol")
        protocol.install(installed(process, framework, THREE_EQUAL))
        with guarded_run() as run, process.agent():
            for _ in range(3):
                with (
                    framework.calling("search", {"q": "x"}, f"call {next(IDS)}") as asked,
                    tool(process, shown=shown),
                    protocol.calling("search", {"q": "x"}) as again,
                ):
                    assert asked.refusal is None
                    assert again.refusal is None
                    again.result = asked.result = "nothing"
            assert framework.calling("search", {"q": "x"}).begin().refusal is not None
        assert report_of(run).tool_calls == 3


def test_a_call_is_refused_where_it_is_asked_about_and_not_where_its_span_starts(
    process: Traced,
) -> None:
    """What a span's start raises is no result of a tool: the framework would lose its history."""
    asks = Integration("a framework", scopes=frozenset({"agents"}))
    guard = installed(process, asks, Policy.none().with_limits(max_tool_calls=2))

    def search(number: int) -> bool:
        with vetoable_tool(process), asks.calling("search", {"page": number}) as asked:
            return asked.refusal is None

    with guarded_run() as run, process.agent():
        assert [search(number) for number in range(4)] == [True, True, False, False]
    assert (report_of(run).rule, report_of(run).tool_calls) == ("tool_call_budget", 2)
    assert process.total("loopguard.aborts", abort__hook="integration", abort__result="ok") == 1
    asks.uninstall(guard)
    with pytest.raises(RunAborted), guarded_run(), process.agent():
        for number in range(3):
            search(number)


def test_a_call_whose_span_was_made_aside_counts_once(
    process: Traced, framework: Integration
) -> None:
    """An instrumentation may make it of a message that tells of the call, before it is made."""
    installed(process, framework, THREE_EQUAL)

    def search(call_id: str) -> bool:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": call_id,
        }
        span = process.tracer.start_span("execute_tool search", attributes=attributes)
        with framework.calling("search", {"q": "x"}, call_id) as asked:
            asked.result = "nothing"
            made = asked.refusal is None
        span.end()
        return made

    with guarded_run() as run, process.agent():
        assert [search(f"call {number}") for number in range(5)] == [True] * 3 + [False] * 2
    assert (report_of(run).rule, report_of(run).tool_calls) == ("repeated_call_limit", 3)


def vetoable_tool(process: Traced) -> AbstractContextManager[Span]:
    attributes = {"gen_ai.operation.name": "execute_tool", VETOABLE: True}
    return process.tracer.start_as_current_span("execute_tool search", attributes=attributes)


@pytest.mark.parametrize("shown", [True, False], ids=["in-a-span", "no-span"])
def test_calls_that_were_let_through_before_the_limit_are_made(
    process: Traced, framework: Integration, *, shown: bool
) -> None:
    """Six begin at once, of which five may: the sixth is refused, whatever asks first."""
    installed(process, framework, Policy.none().with_limits(max_tool_calls=5))
    with guarded_run() as run, process.agent(), ExitStack() as spans:
        contexts = [copy_context() for _ in range(6)]
        calls = [framework.calling("search", {"page": n}) for n in range(6)]
        for each in contexts if shown else ():
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            span = process.tracer.start_span("execute_tool search", attributes=attributes)
            each.run(attach, set_span_in_context(span))
            spans.callback(span.end)
        made = [
            each.run(call.begin).refusal is None for each, call in zip(contexts, calls, strict=True)
        ]
        for each, call in zip(contexts, calls, strict=True):
            each.run(call.end, "nothing")
    assert made == [True] * 5 + [False]
    assert report_of(run).tool_calls == 5


def test_a_call_that_is_refused_is_refused_again(process: Traced, framework: Integration) -> None:
    installed(process, framework, THREE_EQUAL)
    with guarded_run(), process.agent():
        for _ in range(3):
            call(process, framework, "asks-inside")
        with tool(process, shown=True):
            for _ in range(2):  # a framework that tries again
                with framework.calling("search", {"q": "x", "page": 0}) as asked:
                    assert asked.refusal is not None


def test_many_calls_at_once_without_ids_count_once_each(
    process: Traced, framework: Integration
) -> None:
    installed(process, framework, Policy.none().with_limits(max_tool_calls=100))
    with guarded_run() as run, process.agent():
        contexts = [copy_context() for _ in range(60)]
        given: list[dict[str, object]] = [{"page": number} for number in range(60)]
        calls = [framework.calling("search", each) for each in given]
        for context, each in zip(contexts, calls, strict=True):
            context.run(each.begin)
        for arguments in given:
            arguments["page"] = "changed by the tool"
        for context, each in zip(contexts, calls, strict=True):
            context.run(each.end, "nothing")
    assert (report_of(run).steps, report_of(run).tool_calls) == (60, 60)


def test_calls_that_come_back_in_the_order_in_which_they_began(
    process: Traced, framework: Integration
) -> None:
    """Pairs of hooks in one context: neither is inside the other."""
    installed(process, framework, Policy.none())
    with guarded_run() as run, process.agent():
        for number in range(20):
            pair = [framework.calling("search", {"page": (number, each)}).begin() for each in "ab"]
            for each in pair:
                each.end("nothing")
        assert CALLS.get() == ()
    assert report_of(run).tool_calls == 40


def test_a_tool_that_runs_an_agent_with_a_tool_of_the_same_name(
    process: Traced, framework: Integration
) -> None:
    installed(process, framework, Policy.none())
    outer = framework.calling("search", {"q": "x"})
    with guarded_run() as run, process.agent(), outer, process.agent("inner"), process.tool():
        pass
    assert report_of(run).tool_calls == 1, "the one that runs an agent is no execution"
    assert report_of(run).steps == 2


def test_what_is_asked_runs_no_code_of_others_in_the_lock(
    process: Traced, framework: Integration
) -> None:
    guard = installed(process, framework, Policy.none())
    tracker: Any = vars(guard)["_tracker"]
    locks: list[bool] = []

    class Odd:
        def __repr__(self) -> str:
            locks.append(tracker.runs.lock._is_owned())
            return "odd"

    with guarded_run() as run, process.agent(), framework.calling("search", {"q": Odd()}) as asked:
        asked.result = [Odd()]
    assert not any(locks)
    assert report_of(run).tool_calls == 1
    assert process.total("loopguard.errors") == 0


def test_a_call_that_is_cancelled_is_no_error(process: Traced, framework: Integration) -> None:
    installed(process, framework)
    with guarded_run() as run, process.agent():
        for number in range(8):
            with suppress(asyncio.CancelledError), framework.calling("search", {"page": number}):
                raise asyncio.CancelledError
    assert report_of(run).violations == ()


def test_the_sequence_of_the_application_is_left_alone(
    process: Traced, framework: Integration
) -> None:
    installed(process, framework)
    random.seed(7)
    first = random.random()  # noqa: S311 -- what an application draws
    random.seed(7)
    for _ in range(3):  # the SDK chooses among exemplars, where there are several
        with guarded_run(), process.agent(), framework.calling("search", {}):
            pass
    assert random.random() == first  # noqa: S311 -- as above


@pytest.mark.parametrize("stops", [("integration",), ("integration", "veto", "cancel")])
def test_without_the_gate_a_call_is_refused_inside_its_span_too(
    process: Traced, framework: Integration, stops: tuple[str, ...]
) -> None:
    installed(
        process, framework, Policy.none().with_limits(max_llm_calls=2), mode=None, abort=stops
    )
    refused: list[bool] = []
    with guarded_run(), process.agent():
        for _ in range(4):
            with process.chat():
                refused.append(framework.refusal() is not None)
    assert refused == [False, False, True, True]


def test_a_loop_that_swallows_refusals_is_cancelled(
    process: Traced, framework: Integration
) -> None:
    installed(process, framework)

    async def loop() -> None:
        with guarded_run(), process.agent():
            process.work(5)
            for _ in range(50):
                assert framework.refusal() is not None
                await asyncio.sleep(0)
            pytest.fail("nobody has stopped it")

    with pytest.raises(RunAborted):
        asyncio.run(loop())


def test_an_error_is_known_and_comes_out(process: Traced, framework: Integration) -> None:
    installed(process, framework)
    with guarded_run() as run, process.agent():
        for _ in range(4):
            with (
                pytest.raises(OSError, match="down"),
                framework.calling("search", {}) as asked,
            ):
                assert asked.refusal is None
                raise OSError("down")
        with framework.calling("search", {}) as asked:
            assert asked.refusal is not None
    assert (report_of(run).rule, report_of(run).tool_calls) == ("repeated_error", 4)


def test_a_model_call_of_a_tripped_run_is_refused(process: Traced, framework: Integration) -> None:
    installed(process, framework)
    with guarded_run("order-4711") as run, process.agent():
        process.work(4)
        assert framework.refusal() is None
        process.work(1)
        refused = framework.refusal()
        assert framework.refusal() is not None, "however often it is asked"
    assert isinstance(refused, RunAborted)
    assert (refused.report.rule, refused.run_id) == ("repeated_result", "order-4711")
    assert (report_of(run).status, report_of(run).steps) == ("aborted", 10)
    assert process.total("loopguard.aborts", abort__hook="integration", abort__result="ok") == 1


def test_a_model_call_that_would_break_a_limit_is_refused(
    process: Traced, framework: Integration
) -> None:
    installed(process, framework, Policy.none().with_limits(max_llm_calls=2))
    with guarded_run() as run, process.agent():
        for _ in range(2):
            assert framework.refusal() is None
            with process.chat():
                process.request_model()
        assert framework.refusal() is not None
    report = report_of(run)
    assert (report.rule, report.model_calls) == ("llm_call_budget", 2)
    [trip] = report.violations
    assert trip.phase == "pre"


def test_model_calls_that_nothing_else_shows_count(process: Traced, framework: Integration) -> None:
    """They are made by another process: no span shows them, and no request passes the gate."""
    installed(process, framework, Policy.none().with_limits(max_llm_calls=2))
    made: list[bool] = []
    with guarded_run() as run:
        for _ in range(4):
            with framework.asking() as asked:
                made.append(asked.refusal is None)
    assert made == [True, True, False, False]
    report = report_of(run)
    assert (report.rule, report.model_calls, report.steps) == ("llm_call_budget", 2, 2)
    assert (report.status, report.steps_after_trip) == ("aborted", 0)
    assert process.total("loopguard.errors") == 0


def test_asking_inside_the_span_of_the_call_counts_it_once(
    process: Traced, framework: Integration
) -> None:
    installed(process, framework, Policy.none().with_limits(max_llm_calls=2))
    refused: list[bool] = []
    with guarded_run() as run, process.agent():
        for _ in range(3):
            with process.chat():
                refused.append(framework.refusal() is not None)
                if not refused[-1]:
                    process.request_model()
    assert refused == [False, False, True]
    assert report_of(run).model_calls == 2


def test_the_form_that_the_user_asked_for(process: Traced, framework: Integration) -> None:
    installed(process, framework, abort_exception="base")
    with guarded_run(), process.agent():
        process.work(5)
        assert isinstance(framework.refusal(), RunInterrupted)


def test_another_run_is_not_refused(process: Traced, framework: Integration) -> None:
    installed(process, framework)
    with guarded_run(), process.agent():
        process.work(5)
        assert framework.refusal() is not None
    with guarded_run(), process.agent():
        assert framework.refusal() is None
    assert framework.refusal() is None, "outside of any run"
    with framework.calling("search", {}) as asked:
        assert asked.refusal is None


def test_a_guard_that_is_shut_down_or_uninstalled_is_not_asked(
    process: Traced, framework: Integration
) -> None:
    one, other = (installed(process, framework, THREE_EQUAL) for _ in range(2))
    assert framework.is_active
    framework.uninstall(one)
    assert framework.is_active
    other.shutdown()
    assert not framework.is_active


@pytest.mark.parametrize("asks", [True, False])
def test_a_run_that_asks_is_not_said_to_be_unseen(
    process: Traced, framework: Integration, caplog: pytest.LogCaptureFixture, *, asks: bool
) -> None:
    installed(process, framework)
    with guarded_run():
        assert not asks or framework.refusal() is None
        process.request_model()
    assert ("no span of the agent arrived" in caplog.text) is not asks


class TestHints:
    def told(self, process: Traced, framework: Integration, turns: int = 5) -> list[str | None]:
        with process.agent():
            hints: list[str | None] = []
            for _ in range(turns):
                hints.append(framework.hint())
                process.work(1)
            return hints

    def test_off_by_default(self, process: Traced, framework: Integration) -> None:
        installed(process, framework)
        assert self.told(process, framework) == [None] * 5

    def test_once_for_each_rule(self, process: Traced, framework: Integration) -> None:
        installed(process, framework, Policy(steer="{rule}: {subject}, {count}"))
        first, second = self.told(process, framework), self.told(process, framework)
        assert first == [
            None,
            None,
            None,
            "repeated_result: the tool 'search', 3",
            "repeated_output: your own answers, 3",
        ]
        assert second == first, "each run"
        assert process.total("loopguard.hints", rule="repeated_result") == 2

    def test_nothing_is_changed_in_observe(self, process: Traced, framework: Integration) -> None:
        installed(process, framework, Policy(steer=True), mode="observe")
        assert self.told(process, framework) == [None] * 5
