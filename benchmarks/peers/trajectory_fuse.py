"""trajectory-fuse: `observe` each action with its result and success; it raises."""

from __future__ import annotations

from trajectory_fuse import Action, AgentFuse, DeadlockDetected

from benchmarks.peers._adapter import Call, Contender, Verdict


def action_of(call: Call) -> Action:
    return Action(tool=call.tool, args=call.arguments, result=call.result, success=not call.failed)


class Run:
    def __init__(self) -> None:
        self._fuse = AgentFuse()

    def judge(self, action: Action) -> Verdict:
        try:
            self._fuse.observe(action)
        except DeadlockDetected:
            return "stop"
        return "go"


CONTENDERS = (
    Contender(
        name="trajectory-fuse",
        options="AgentFuse()",
        start=lambda: Run().judge,
        prepare=action_of,
    ),
)
