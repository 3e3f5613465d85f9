"""agentguard47: `LoopGuard` alone, as its README begins, and with its two relatives."""

from __future__ import annotations

from agentguard import AgentGuardError, FuzzyLoopGuard, LoopGuard, RetryGuard

from benchmarks.peers._adapter import Call, Contender, Verdict


class Run:
    def __init__(self) -> None:
        self._guard = LoopGuard()

    def judge(self, call: Call) -> Verdict:
        try:
            self._guard.check(call.tool, call.arguments)
        except AgentGuardError:
            return "stop"
        return "go"


class WholeRun:
    """What its tracer tells the guards of a call: the call, and then `tool.error` or `.result`."""

    def __init__(self) -> None:
        self._guards = (LoopGuard(), FuzzyLoopGuard())
        self._retries = RetryGuard()

    def judge(self, call: Call) -> Verdict:
        try:
            for guard in self._guards:
                guard.check(call.tool, call.arguments)
            event = "tool.error" if call.failed else "tool.result"
            self._retries.auto_check(event, {"tool_name": call.tool})
        except AgentGuardError:
            return "stop"
        return "go"


CONTENDERS = (
    Contender(name="agentguard47", options="LoopGuard()", start=lambda: Run().judge),
    Contender(
        name="agentguard47",
        options="LoopGuard(), FuzzyLoopGuard(), RetryGuard()",
        start=lambda: WholeRun().judge,
        timed=False,
    ),
)
