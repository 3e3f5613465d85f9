"""agentbelt-loop: `record` the call and its result, then `check`, which raises.

Each run has a detector of its own: what one learns of a loop in a session would decide the next.
"""

from __future__ import annotations

from agentbelt_loop import LoopDetected, LoopDetector

from benchmarks.peers._adapter import Call, Contender, Verdict

SESSION = "session-1"


class Run:
    def __init__(self) -> None:
        self._detector = LoopDetector()

    def judge(self, call: Call) -> Verdict:
        self._detector.record(SESSION, tool=call.tool, args=call.arguments, result=call.result)
        try:
            self._detector.check(SESSION)
        except LoopDetected:
            return "stop"
        return "go"


CONTENDERS = (
    Contender(name="agentbelt-loop", options="LoopDetector()", start=lambda: Run().judge),
)
