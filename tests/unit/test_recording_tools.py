"""Tools that note how often they ran, and are else as the functions that they are made of."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, get_type_hints

import pytest

from otel_loopguard.testing import recording_tool


class Order:
    """Something that annotations name."""


def lookup(order: Annotated[int, "its number"], *, note: str = "none") -> Order | None:
    """Look an order up.

    Args:
        order: its number.
        note: what to write beside it.

    """
    if order < 0:
        raise ValueError(note)
    return None if order else Order()


async def awaited(order: int) -> int:
    """Look it up elsewhere."""
    await asyncio.sleep(0)
    return order + 1


def test_it_is_as_the_function_that_it_is_made_of():
    tool = recording_tool(lookup)
    assert tool.__name__ == "lookup"
    assert tool.__doc__ == lookup.__doc__
    assert tool.__module__ == lookup.__module__
    assert inspect.signature(tool) == inspect.signature(lookup)
    hints = get_type_hints(tool, include_extras=True)
    assert hints == get_type_hints(lookup, include_extras=True)
    assert inspect.isfunction(tool)
    assert not inspect.iscoroutinefunction(tool)


def test_it_counts_what_ran_and_with_what():
    tool = recording_tool(lookup)
    assert (tool.executions, tool.calls) == (0, ())
    assert tool(7) is None
    assert isinstance(tool(order=0, note="new"), Order)
    assert tool.executions == 2
    assert [each.arguments for each in tool.calls] == [{"order": 7}, {"order": 0, "note": "new"}]


def test_what_it_ran_with_is_kept_as_it_was():
    lock = threading.Lock()

    @recording_tool
    def empty(items: list[int], once: object) -> object:
        items.clear()
        return once

    assert empty([1, 2], lock) is lock
    assert empty.calls[0].arguments == {"items": [1, 2], "once": lock}, "a lock is there once"


def test_a_failed_attempt_counts():
    tool = recording_tool(lookup)
    with pytest.raises(ValueError, match="none"):
        tool(-1)
    assert (tool.executions, tool.calls[0].arguments) == (1, {"order": -1})


def test_wrong_arguments_reach_nothing():
    tool = recording_tool(lookup)
    with pytest.raises(TypeError, match=r"lookup\(\) missing 1 required positional argument"):
        tool()  # pyright: ignore[reportCallIssue] -- wrong on purpose
    assert (tool.executions, tool.calls) == (0, ())


def test_an_async_function_stays_one():
    tool = recording_tool(awaited)
    assert inspect.iscoroutinefunction(tool)
    assert inspect.signature(tool) == inspect.signature(awaited)
    assert asyncio.run(twice(tool(1), tool(order=2))) == (2, 3)
    assert [each.arguments for each in tool.calls] == [{"order": 1}, {"order": 2}]


async def twice(first: object, second: object) -> tuple[object, object]:
    assert inspect.isawaitable(first)
    assert inspect.isawaitable(second)
    return await first, await second


def test_what_is_kept_is_bounded():
    tool = recording_tool(lookup)
    for order in range(1, 251):
        tool(order)
    assert tool.executions == 250
    assert [each.arguments["order"] for each in tool.calls] == list(range(151, 251))


def test_a_method_has_no_self_to_fill_in():
    class Shop:
        def __init__(self) -> None:
            self.asked = 0

        def stock(self, item: int) -> int:
            """Say how many there are."""
            self.asked += 1
            return item

    shop = Shop()
    tool = recording_tool(shop.stock)
    assert list(inspect.signature(tool).parameters) == ["item"]
    assert (tool(3), shop.asked) == (3, 1)
    assert tool.calls[0].arguments == {"item": 3}


def test_two_tools_of_one_function_count_apart():
    first, second = recording_tool(lookup), recording_tool(lookup)
    wrapped = recording_tool(first)
    wrapped(1)
    assert (first.executions, second.executions, wrapped.executions) == (1, 0, 1)


def values() -> Iterator[int]:
    yield 1


async def later_values() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    "function", [Order, "lookup", values, later_values, None], ids=lambda each: str(each)[:20]
)
def test_what_is_no_such_function_is_refused(function: object):
    with pytest.raises(TypeError, match="cannot be a recording tool; expected a function"):
        recording_tool(function)  # pyright: ignore[reportArgumentType] -- wrong on purpose
