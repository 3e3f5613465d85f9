"""How models, tools and clocks for tests look to the type checkers of their users. Never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import assert_type

from otel_loopguard import LoopGuard
from otel_loopguard.model_turns import ModelTurn, ToolCall
from otel_loopguard.testing import (
    EndlessModel,
    FakeClock,
    ScriptedModel,
    recording_tool,
)


@recording_tool
def lookup(order: int, *, note: str = "none") -> list[str]:
    return [note] * order


@recording_tool
async def awaited(order: int) -> str:
    return str(order)


def models() -> None:
    model = EndlessModel("lookup", {"order": 7}, at_once=2)
    assert_type(model("anything", at="all"), ModelTurn)
    assert_type(model.calls, int)
    model.refuse("over")
    ScriptedModel(
        ["text", ("lookup", {"order": 7}), [("lookup", {}), ToolCall(name="stock")], ModelTurn()]
    )
    ScriptedModel([TimeoutError("slow")], name="shop")
    ScriptedModel([7])  # type: ignore[list-item]  # a number is no turn


async def tools() -> None:
    assert_type(lookup(7, note="x"), list[str])
    assert_type(await awaited(7), str)
    assert_type(lookup.executions, int)
    assert_type(lookup.calls[-1].arguments, Mapping[str, Any])
    lookup("7")  # type: ignore[arg-type]  # an order is a number


def clock() -> None:
    stopped = FakeClock()
    LoopGuard(max_duration_s=60, clock=stopped)
    assert_type(stopped.advance(61), float)
