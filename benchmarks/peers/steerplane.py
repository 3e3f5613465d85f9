"""steerplane: `LoopDetector`, which `run.log_step` asks; it knows the names of actions only.

Left out is what a run does besides: its client of a server, its list of events, its console.
"""

from __future__ import annotations

from steerplane import LoopDetector

from benchmarks.peers._adapter import Call, Contender, Verdict


class Run:
    def __init__(self) -> None:
        self._detector = LoopDetector()

    def judge(self, call: Call) -> Verdict:
        return "stop" if self._detector.record_action(call.tool).loop_detected else "go"


CONTENDERS = (Contender(name="steerplane", options="LoopDetector()", start=lambda: Run().judge),)
