from otel_loopguard import LoopGuard, Step
from otel_loopguard.testing import Capture, EndlessModel, recording_tool


@recording_tool
def lookup(order: int) -> str:
    return f"order {order}: not yet"


def agent(model: EndlessModel, guard: LoopGuard) -> None:
    while calls := model("Where is order 7?").calls:
        step = Step(kind="tool", name=calls[0].name, arguments=calls[0].arguments)
        if not guard.check(step).allowed:
            return
        lookup(order=7)


def test_the_guard_stops_the_agent(loopguard: Capture) -> None:
    model, guard = EndlessModel("lookup", {"order": 7}), LoopGuard(max_tool_calls=5)
    loopguard.assert_stops(
        lambda: agent(model, guard), model=model, tools=[lookup], tool_executions=5
    )
