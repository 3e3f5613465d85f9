"""aura-guard: `check_tool`, then `record_result` where it allowed the call.

Every answer but `allow` keeps the tool from running (`cache` answers with an old result), so each
counts as a stop. Errors are reported as `timeout`: it takes a code, not a text, and acts only on
some; of those that a caller might choose this is the one that serves it best.
"""

from __future__ import annotations

from aura_guard import AgentGuard, PolicyAction

from benchmarks.peers._adapter import Call, Contender, Verdict


class Run:
    def __init__(self) -> None:
        self._guard = AgentGuard(secret_key=b"benchmark")

    def judge(self, call: Call) -> Verdict:
        decision = self._guard.check_tool(call.tool, args=call.arguments)
        if decision.action != PolicyAction.ALLOW:
            return "stop"
        if call.failed:
            self._guard.record_result(ok=False, error_code="timeout")
        else:
            self._guard.record_result(ok=True, payload=call.result)
        return "go"


CONTENDERS = (
    Contender(name="aura-guard", options="AgentGuard(secret_key)", start=lambda: Run().judge),
)
