"""Which run a model request belongs to: what its requests tell, and loops that share a span."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from opentelemetry.trace import INVALID_SPAN, Span, use_span

from otel_loopguard import (
    AbortRequest,
    LoopGuardSpanProcessor,
    Policy,
    RunAborted,
    guarded_run,
    sharers,
)
from otel_loopguard.admission import Admission
from otel_loopguard.runs import OPEN_CALLS, Run
from otel_loopguard.told import Told
from tests._tracing import Traced

LIMIT = Policy.none().with_limits(max_llm_calls=2)
FREE = Policy.none().with_limits(max_llm_calls=99)
REPEATED = {"rules": {"repeated_result": {"abort": 3}}}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
ECHO = "com.anthropic.sdk.python"


@pytest.fixture
def guard(process: Traced) -> LoopGuardSpanProcessor:
    return process.guard(mode="enforce")


class Loop:
    """A loop around a client: it asks the model, calls a tool, and tells the model the result."""

    def __init__(self, process: Traced, name: str, *, ids: bool = True, spans: bool = True) -> None:
        self.process = process
        self.guard = process.guards[0]
        self.name = name
        self.ids = ids
        self.spans = spans
        self.told: tuple[str, ...] = ()
        self.response_id = ""
        self.run: Run | None = None

    def ask(self) -> Admission:
        """Make one model request."""
        told = Told(self.told if self.ids else (), hash(self.name), self.response_id)
        admission = self.guard.admit(lambda: told)
        assert admission is not None
        admission.over(failed=False)
        self.run = admission.run
        return admission

    def turn(self, tool: str = "search", **arguments: object) -> Admission:
        with self.chat():
            admission = self.ask()
        self.call(tool, **arguments)
        return admission

    def call(self, tool: str, **arguments: object) -> None:
        """Execute a tool."""
        call_id = f"{self.name}{len(self.told)}_id"
        if self.spans:
            given = {"gen_ai.tool.call.id": call_id} if self.ids else {}
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.call.arguments": json.dumps(arguments),
                **given,
            }
            with self.process.tracer.start_as_current_span(tool, attributes=attributes) as span:
                span.set_attribute("gen_ai.tool.call.result", '"nothing"')
        self.told = (call_id, *self.told)

    @contextmanager
    def chat(self, call_id: str = "") -> Generator[Span]:
        """Make the span of a model call; its answer asks for a tool if an id is given."""
        with self.process.tracer.start_as_current_span("chat m", attributes=CHAT) as span:
            yield span
            asks: dict[str, object] = {
                "type": "tool_call",
                "id": call_id,
                "name": "lookup",
                "arguments": {},
            }
            text: dict[str, object] = {"type": "text", "content": "so"}
            part = asks if call_id else text
            said = {"role": "assistant", "parts": [part]}
            span.set_attribute("gen_ai.output.messages", json.dumps([said]))

    def until_refused(self, most: int = 20) -> int:
        """Return how many turns are let through."""
        for done in range(most):
            try:
                self.turn()
            except RunAborted:
                return done
        return most


def session(process: Traced) -> Span:
    return process.tracer.start_span("session")


# ------------------------------------------------------------------------- by what a request tells


@pytest.mark.usefixtures("guard")
def test_a_loop_is_one_run_from_its_second_request_on(process: Traced) -> None:
    loop = Loop(process, "a")
    assert loop.turn().run is None
    first = loop.turn().run
    assert first is not None
    assert first.kind == "joined"
    assert loop.turn().run is first
    assert Loop(process, "b").turn().run is None, "another one"


def test_the_run_is_written_on_the_span_of_its_call(process: Traced) -> None:
    process.guard(LIMIT, mode="enforce")
    loop = Loop(process, "a", spans=False)
    assert loop.until_refused() == 3
    (refused,) = [span for span in process.spans if "loopguard.tripped" in (span.attributes or {})]
    assert (refused.name, (refused.attributes or {})["loopguard.rule"]) == (
        "chat m",
        "llm_call_budget",
    )


@pytest.mark.usefixtures("guard")
def test_a_loop_of_which_only_some_ids_are_left(process: Traced) -> None:
    loop = Loop(process, "a")
    for _ in range(3):
        loop.turn()
    run = loop.run
    loop.told = loop.told[:2]
    assert loop.turn().run is run is not None


@pytest.mark.usefixtures("guard")
def test_ids_that_each_answer_gives_anew_say_nothing(process: Traced) -> None:
    loop = Loop(process, "a")
    loop.turn()
    loop.told = ("call_1",)
    assert loop.ask().run is None


def test_a_conversation_that_the_provider_keeps(process: Traced) -> None:
    process.guard(LIMIT, mode="enforce")
    loop = Loop(process, "a", ids=False)
    loop.response_id = "resp_1"
    assert [loop.ask().run is not None for _ in range(2)] == [True, True]
    with pytest.raises(RunAborted) as caught:
        loop.ask()
    assert caught.value.run_id == "resp_1"


def test_requests_with_no_span_at_all(process: Traced) -> None:
    process.guard(LIMIT, mode="enforce")
    loop = Loop(process, "a", spans=False)
    loop.told = ("a0_id",)
    loop.ask()
    loop.ask()
    with pytest.raises(RunAborted) as caught:
        loop.ask()
    assert caught.value.run_id == "a0_id"


def test_spans_below_a_request_start_in_its_run(
    process: Traced, guard: LoopGuardSpanProcessor
) -> None:
    """Instrumentations that were there before the gate start their span inside it."""
    told = Told(("a0_id",), 1)
    admission = guard.admit(lambda: told)
    assert admission is not None
    with Loop(process, "a").chat():
        pass
    admission.over(failed=False)
    assert admission.run is not None
    assert admission.run.report().model_calls == 1
    with Loop(process, "b").chat():
        pass
    assert admission.run.report().model_calls == 1, "it is over"


def test_what_a_request_tells_is_read_only_where_its_run_is_not_known(
    process: Traced, guard: LoopGuardSpanProcessor
) -> None:
    def never() -> Told:
        raise AssertionError("nobody asked")

    with process.agent():
        assert guard.admit(never) is not None
    with guarded_run():
        assert guard.admit() is not None
        assert guard.admit(never) is not None
    assert process.total("loopguard.internal.errors") == 0


def test_a_thread_that_knows_no_context_is_known_by_the_calls_that_it_tells_of(
    process: Traced, guard: LoopGuardSpanProcessor
) -> None:
    loop = Loop(process, "a")
    with use_span(session(process)):
        loop.turn()
        loop.turn()
        run = loop.run
        assert run is not None
        assert run.kind == "root"
        with use_span(INVALID_SPAN):
            told = Told(loop.told[-1:], hash(loop.name))
            admission = guard.admit(lambda: told)
    assert admission is not None
    assert admission.run is run


def test_a_loop_that_asks_again_is_refused_again(process: Traced) -> None:
    process.guard(LIMIT, mode="enforce")
    loop = Loop(process, "a")
    assert loop.until_refused() == 3
    run = loop.run
    assert run is not None
    before = run.last_ns
    with pytest.raises(RunAborted), process.tracer.start_as_current_span("retry"), loop.chat():
        loop.ask()
    assert run.refused_requests == 2
    assert run.last_ns == before, "it is not kept by that"


def test_a_loop_that_has_a_span_for_each_turn(process: Traced) -> None:
    process.guard(LIMIT, mode="enforce")
    loop = Loop(process, "a")
    for _ in range(3):
        with process.tracer.start_as_current_span("turn"):
            loop.turn()
    run = loop.run
    assert run is not None
    assert (run.report().model_calls, run.report().tool_calls) == (2, 2)
    with pytest.raises(RunAborted), process.tracer.start_as_current_span("turn"):
        loop.turn()


# ----------------------------------------------------------------------- loops that share one span


@pytest.mark.usefixtures("guard")
def test_only_the_loop_that_tripped_the_run_is_refused(process: Traced) -> None:
    stubborn, other = Loop(process, "a"), Loop(process, "b")
    with use_span(session(process), end_on_exit=True):
        other.turn("lookup", q=1)
        assert stubborn.until_refused() == 5
        other.turn("lookup", q=2)
        other.turn("lookup", q=3)
        with pytest.raises(RunAborted):
            stubborn.turn()
        run = other.run
    assert run is not None
    assert (run.kind, run.ended) == ("joined", True), "it ends with the span"
    assert run.report().steps == 4
    steps = process.total("loopguard.steps.after.trip")
    assert steps == 0, "what the other one does is not held against the loop that was stopped"


def test_a_loop_whose_first_call_was_the_last_straw_goes_on(process: Traced) -> None:
    """Until it tells of a call it is one with the other, but it has done nothing twice."""
    process.guard(Policy.from_mapping(REPEATED, base=Policy.none()), mode="enforce")
    stubborn, other = Loop(process, "a"), Loop(process, "b")
    with use_span(session(process), end_on_exit=True):
        with other.chat():
            other.ask()
        stubborn.turn()
        stubborn.turn()
        run = stubborn.run
        assert run is not None
        other.call("search")
        assert run.trip is not None
        assert run.tripped.call_ids == other.told
        other.turn()
        with pytest.raises(RunAborted):
            stubborn.turn()


@pytest.mark.usefixtures("guard")
def test_no_run_of_a_loop_outlives_the_span(process: Traced) -> None:
    with use_span(session(process), end_on_exit=True):
        for name in range(sharers.HEIRS + 10):
            loop = Loop(process, f"{name}")
            loop.turn("lookup", q=name)
            loop.turn("lookup", q=-name)
    assert process.total("loopguard.run.active") == 0
    assert process.total("loopguard.runs") == sharers.HEIRS + 10


@pytest.mark.usefixtures("guard")
def test_calls_that_never_end_are_bounded(process: Traced) -> None:
    first, second = Loop(process, "a"), Loop(process, "b")
    with use_span(session(process)):
        first.turn()
        first.turn()
        for _ in range(OPEN_CALLS + 10):
            with use_span(process.tracer.start_span("chat m", attributes=CHAT)):
                second.ask()
    assert second.run is not None
    assert len(second.run.open_calls) == OPEN_CALLS


def test_the_task_of_a_loop_that_goes_on_is_not_cancelled(process: Traced) -> None:
    """The span's run began in the task of the other one."""
    process.guard(Policy.from_mapping(REPEATED, base=Policy.none()), mode="enforce")
    stubborn, other = Loop(process, "a"), Loop(process, "b")

    async def healthy() -> int:
        other.turn("lookup", q=0)
        begun.set()
        await stopped.wait()
        for number in range(1, 4):
            other.turn("lookup", q=number)
            await asyncio.sleep(0)
        return len(other.told)

    async def runaway() -> int:
        await begun.wait()
        refused = 0
        for _ in range(9):
            try:
                stubborn.turn()
            except RunAborted:
                refused += 1
        stopped.set()
        return refused

    async def both() -> tuple[int, int]:
        good, bad = await asyncio.gather(healthy(), runaway())
        return good, bad

    with use_span(session(process), end_on_exit=True):
        begun, stopped = asyncio.Event(), asyncio.Event()
        assert asyncio.run(both()) == (4, 6)


def test_silence_of_a_loop_whose_call_is_not_known_yet_is_none(process: Traced) -> None:
    process.guard(Policy.none().with_limits(max_idle_s=1.0), mode="enforce")
    with use_span(session(process), end_on_exit=True):
        first, second = Loop(process, "a"), Loop(process, "b")
        for loop in (first, second, first, second):
            loop.turn()
        for _ in range(2):
            time.sleep(0.6)
            with first.chat():
                first.ask()
                time.sleep(0.6)
        first.ask()


def test_loops_that_begin_alike_one_after_the_other(process: Traced) -> None:
    """What each does first is no repetition of what the one before did."""
    process.guard(mode="enforce")
    with use_span(session(process), end_on_exit=True):
        for name in range(12):
            loop = Loop(process, f"{name}")
            loop.turn("list_files")
            loop.turn("read_file", number=name)


def test_a_limit_holds_after_a_pattern_of_one_of_them(process: Traced) -> None:
    limits = {"limits": {"max_llm_calls": 8}, **REPEATED}
    told: list[AbortRequest] = []
    process.guard(
        Policy.from_mapping(limits, base=Policy.none()), mode="enforce", abort_hooks=[told.append]
    )
    with use_span(session(process), end_on_exit=True):
        assert Loop(process, "a").until_refused() == 3
        other = Loop(process, "b")
        for number in range(5):
            other.turn("lookup", q=number)
        with pytest.raises(RunAborted):
            other.turn("lookup", q=9)
        with pytest.raises(RunAborted):
            Loop(process, "c").turn()
    assert process.total("loopguard.runs") == 2
    assert [each.violation.rule for each in told] == ["repeated_result", "llm_call_budget"]


def test_a_loop_is_known_again_whatever_becomes_of_its_opening(process: Traced) -> None:
    process.guard(mode="enforce")
    loop = Loop(process, "a")
    with use_span(session(process), end_on_exit=True):
        for number in range(5):
            loop.name = f"{number // 2}"
            loop.turn()
        with pytest.raises(RunAborted):
            loop.turn()


def test_the_budget_of_a_loop_that_has_a_history_below_the_span_of_another(
    process: Traced,
) -> None:
    process.guard(Policy.none().with_limits(max_llm_calls=3), mode="enforce")
    first, second = Loop(process, "a"), Loop(process, "b")
    second.told = ("b_of_yesterday",)
    with use_span(session(process), end_on_exit=True):
        first.turn()
        first.turn()
        second.turn()
        with pytest.raises(RunAborted):
            second.turn()


def test_refusals_of_one_loop_do_not_hide_the_calls_of_another(process: Traced) -> None:
    process.guard(Policy.from_mapping(REPEATED, base=Policy.none()), mode="enforce")
    bare, other = Loop(process, "a"), Loop(process, "b")
    with use_span(session(process), end_on_exit=True):
        bare.ask()
        bare.call("search")
        other.turn("lookup", q=-1)
        with pytest.raises(RunAborted):
            for _ in range(9):
                bare.ask()
                bare.call("search")
        for number in range(4):
            with pytest.raises(RunAborted):
                bare.ask()
            other.turn("lookup", q=number)
        run = other.run
        assert run is not None
        assert run is not bare.run
        assert run.guard.stats().model_calls == 4, "all but the first"


def test_tools_are_of_the_loop_that_has_asked_for_them(process: Traced) -> None:
    process.guard(Policy.from_mapping(REPEATED, base=Policy.none()), mode="enforce")
    own, other = Loop(process, "a"), Loop(process, "b")
    with use_span(session(process), end_on_exit=True), pytest.raises(RunAborted):
        for number in range(9):
            loops = (own, other) if number < 2 else (other, own)
            for loop in loops:
                with loop.chat(call_id=f"{loop.name}{number}_id"):
                    loop.ask()
            for loop in loops:
                loop.call("lookup", q=number if loop is own else -1)
    assert (len(own.told), len(other.told)) == (4, 4), "the other one has done it thrice since"


@pytest.mark.usefixtures("guard")
def test_a_loop_that_goes_on_is_guarded(process: Traced) -> None:
    with use_span(session(process), end_on_exit=True):
        assert Loop(process, "a").until_refused() == 5
        assert Loop(process, "b").until_refused() == 5
        assert Loop(process, "c").until_refused() == 5


@pytest.mark.usefixtures("guard")
def test_a_loop_that_begins_anew_is_refused(process: Traced) -> None:
    with use_span(session(process), end_on_exit=True):
        assert Loop(process, "a").until_refused() == 5
        assert Loop(process, "a").until_refused() == 0
    with use_span(session(process), end_on_exit=True):
        assert Loop(process, "a").until_refused() == 5, "that was another session"


@pytest.mark.usefixtures("guard")
def test_ids_of_spans_that_are_others_than_those_of_requests(process: Traced) -> None:
    loop = Loop(process, "a")
    with use_span(session(process), end_on_exit=True):
        for number in range(5):
            loop.turn()
            loop.told = (f"other-{number}", *loop.told[1:])
        with pytest.raises(RunAborted):
            loop.turn()


@pytest.mark.parametrize("case", ["no ids", "kept by the provider", "limit"])
def test_all_are_refused_where_it_cannot_be_told(process: Traced, case: str) -> None:
    policy = LIMIT if case == "limit" else None
    process.guard(policy, mode="enforce")
    with use_span(session(process), end_on_exit=True):
        loop = Loop(process, "a", ids=case != "no ids")
        assert loop.until_refused() == (2 if case == "limit" else 5)
        other = Loop(process, "b", ids=case != "no ids")
        other.response_id = "resp_1" if case == "kept by the provider" else ""
        assert other.until_refused() == 0


def test_a_request_that_is_made_before_the_span_of_its_call(process: Traced) -> None:
    """The gate may stand outside of the instrumentation."""
    guard = process.guard(LIMIT, mode="enforce")
    told: tuple[str, ...] = ()
    with use_span(session(process), end_on_exit=True):
        for number in range(2):
            expected = told
            admission = guard.admit(lambda told=expected: Told(told, 1))
            with process.chat():
                pass
            assert admission is not None
            admission.over(failed=False)
            told = (f"call_{number}_id", *told)
        with pytest.raises(RunAborted) as refused:
            guard.admit(lambda: Told(told, 1))
    assert refused.value.report.model_calls == 2


@contextmanager
def asked_beside(process: Traced, loop: Loop) -> Generator[None]:
    """Ask while the span of the call is not current, as that of a stream is by OpenInference.

    The Anthropic SDK's own span shows the call once more.
    """
    call = process.tracer.start_span("chat m", attributes=CHAT)
    try:
        loop.ask()
        with process.provider.get_tracer(ECHO).start_as_current_span("chat m", attributes=CHAT):
            yield
    finally:
        call.end()


@pytest.mark.parametrize("several", [False, True], ids=["alone", "several"])
def test_calls_whose_spans_are_not_current_while_they_ask(
    process: Traced, *, several: bool
) -> None:
    process.guard(FREE, mode="enforce")
    loops = [Loop(process, name) for name in ("ab" if several else "a")]
    with use_span(session(process), end_on_exit=True):
        for number in range(4):
            for loop in loops:
                with asked_beside(process, loop):
                    pass
                loop.told = (f"{loop.name}{number}_id", *loop.told)
        runs = [loop.run for loop in loops]
        counted = [(run.report().model_calls, run.ahead) for run in runs if run is not None]
    # The other's first call is the span's: it has told of none.
    assert counted == ([(8, 0), (3, 0)] if several else [(4, 0)])


def test_calls_at_once_whose_spans_are_not_current_while_they_ask(process: Traced) -> None:
    process.guard(FREE, mode="enforce")
    loops, tokens = [Loop(process, "a"), Loop(process, "b")], {"a": 10, "b": 1000}
    with use_span(session(process), end_on_exit=True):
        for number in range(4):
            calls = [process.tracer.start_span("chat m", attributes=CHAT) for _ in loops]
            for loop in loops:
                loop.ask()
            for loop, call in zip(loops, calls, strict=True):
                call.set_attribute("gen_ai.usage.input_tokens", tokens[loop.name])
                call.end()
                loop.told = (f"{loop.name}{number}_id", *loop.told)
        run = loops[1].run
    assert run is not None
    assert run.report().input_tokens == 3_000


def test_a_refused_call_whose_span_is_not_current_is_no_step(process: Traced) -> None:
    process.guard(Policy.from_mapping(REPEATED, base=Policy.none()), mode="enforce")
    refused = 0
    with use_span(session(process), end_on_exit=True):
        loop = Loop(process, "a")
        for number in range(5):
            try:
                with asked_beside(process, loop), process.tool():
                    pass
            except RunAborted:
                refused += 1
            else:
                loop.told = (f"a{number}_id", *loop.told)
    assert loop.run is not None
    assert (loop.run.report().model_calls, refused) == (3, 2)
    assert process.total("loopguard.steps.after.trip") == 0


def test_calls_that_two_loops_make_at_once(process: Traced) -> None:
    process.guard(FREE, mode="enforce")
    loops = [Loop(process, "a"), Loop(process, "b")]
    with use_span(session(process), end_on_exit=True):
        for number in range(4):
            calls = [process.tracer.start_span("chat m", attributes=CHAT) for _ in loops]
            for loop, call in zip(loops, calls, strict=True):
                with use_span(call):
                    loop.ask()
            for loop, call in zip(loops, calls, strict=True):
                call.end()
                loop.told = (f"{loop.name}{number}_id", *loop.told)
        runs = [loop.run for loop in loops]
        counted = [(run.report().model_calls, run.ahead) for run in runs if run is not None]
    assert counted == [(8, 0), (3, 0)]


def test_a_pattern_of_model_turns_without_calls_is_of_all(process: Traced) -> None:
    process.guard(
        Policy.from_mapping({"rules": {"repeated_output": {"abort": 3}}}, base=Policy.none()),
        mode="enforce",
    )
    with use_span(session(process), end_on_exit=True):
        assert Loop(process, "a", spans=False).until_refused() == 3
        with pytest.raises(RunAborted):
            Loop(process, "c").turn()


def test_a_loop_that_tells_nothing_yet_and_has_no_span_goes_on(
    process: Traced, guard: LoopGuardSpanProcessor
) -> None:
    with use_span(session(process), end_on_exit=True):
        Loop(process, "a").until_refused()
        with use_span(INVALID_SPAN):
            other = Loop(process, "b", spans=False)
            run = other.ask().run
            assert run is not None
            assert other.ask().run is run
            assert len(run.id) == 32
            unread = guard.admit
            with pytest.raises(RunAborted):
                unread()


@pytest.mark.usefixtures("guard")
def test_what_is_known_of_loops_is_bounded(
    process: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharers, "HEIRS", 2)
    with use_span(session(process), end_on_exit=True):
        stubborn = Loop(process, "a")
        stubborn.until_refused()
        run = stubborn.run
        assert run is not None
        for name in "bcde":
            Loop(process, name).turn()
        assert len(run.sharers.heirs()) == 2
