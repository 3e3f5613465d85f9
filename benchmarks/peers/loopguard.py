"""otel-loopguard itself: `LoopGuard()`, the default policy, `check` and then `record`."""

from __future__ import annotations

from benchmarks.peers._adapter import Call, Contender, Verdict
from otel_loopguard import LoopGuard, Step

MODEL = Step(kind="llm", name="model")


def steps_of(call: Call) -> tuple[int | None, Step, Step]:
    """Return the turn, the step as it is asked about, and the step with its outcome."""
    batch = None if call.turn is None else str(call.turn)
    asked = Step(kind="tool", name=call.tool, arguments=call.arguments, batch=batch)
    done = Step(
        kind="tool",
        name=call.tool,
        arguments=call.arguments,
        batch=batch,
        result=call.result,
        error=call.result if call.failed else None,
    )
    return call.turn, asked, done


class Run:
    def __init__(self) -> None:
        self._guard = LoopGuard()
        self._turn: int | None = None

    def judge(self, steps: tuple[int | None, Step, Step]) -> Verdict:
        turn, asked, done = steps
        if turn != self._turn:
            self._turn = turn
            self._guard.check(MODEL)
            self._guard.record(MODEL)
        before = self._guard.check(asked)
        if not before.allowed:
            return "stop"
        after = self._guard.record(done)
        if not after.allowed:
            return "stop"
        return "warn" if before.violations or after.violations else "go"


CONTENDERS = (
    Contender(
        name="otel-loopguard",
        options="LoopGuard()",
        start=lambda: Run().judge,
        prepare=steps_of,
    ),
)
