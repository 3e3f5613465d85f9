"""agent-loop-guard: `check(tool, args, output)`; the output is optional, and helps it."""

from __future__ import annotations

from loop_guard import LoopGuard

from benchmarks.peers._adapter import Call, Contender, Verdict


class Run:
    def __init__(self) -> None:
        self._guard = LoopGuard()

    def judge(self, call: Call) -> Verdict:
        decision = self._guard.check(tool=call.tool, args=call.arguments, output=call.result)
        if decision.is_loop:
            return "stop"
        return "warn" if decision.should_warn else "go"


CONTENDERS = (
    Contender(
        name="agent-loop-guard",
        options="LoopGuard(), with outputs",
        start=lambda: Run().judge,
    ),
)
