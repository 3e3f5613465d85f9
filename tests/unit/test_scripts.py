"""Scripts and wire formats of the scripted model: pure, so tables are enough."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from otel_loopguard.testing.scripts import (
    DESCRIPTIONS,
    FINAL_ANSWER,
    NO_TOOLS,
    SCRIPTS,
    OfferedTool,
    ScriptedCall,
    ScriptedError,
    Turn,
    find_script,
    script_named,
)
from otel_loopguard.testing.scripts.names import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = OfferedTool(name="search", parameters=TEXT)
LOOKUP = OfferedTool(name="lookup")
SEARCH_MORE = OfferedTool(name="search_more", parameters=TEXT)
HAND_OVER = OfferedTool(name="transfer_to_writer")
CALL_HAND_OVER = Turn(calls=(ScriptedCall(name="transfer_to_writer", arguments={}),))
CALL_SEARCH = Turn(calls=(ScriptedCall(name="search", arguments={"query": "alpha"}),))
CALL_LOOKUP = Turn(calls=(ScriptedCall(name="lookup", arguments={}),))


def calling(name: str, arguments: dict[str, object], text: str | None = None) -> Turn:
    return Turn(calls=(ScriptedCall(name=name, arguments=arguments, text=text),))


SEARCH_AGAIN = calling("search", {"query": "alpha 1"})
JOB_STATUS = OfferedTool(name="get_job_status")
CALL_JOB_STATUS = calling("get_job_status", {})


@pytest.mark.parametrize(
    ("script", "tools", "results", "expected"),
    [
        ("endless", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("endless", [SEARCH, LOOKUP], 1, CALL_SEARCH),
        ("endless", [SEARCH, LOOKUP], 10_000, CALL_SEARCH),
        ("endless", [LOOKUP, SEARCH], 0, CALL_LOOKUP),
        ("endless", [], 0, NO_TOOLS),
        ("finish3", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("finish3", [SEARCH, LOOKUP], 1, CALL_LOOKUP),
        ("finish3", [SEARCH, LOOKUP], 2, FINAL_ANSWER),
        ("finish3", [SEARCH, LOOKUP], 3, FINAL_ANSWER),
        ("finish3", [SEARCH], 1, CALL_SEARCH),
        ("finish3", [], 0, NO_TOOLS),
        ("handoff", [SEARCH, LOOKUP, HAND_OVER], 7, CALL_HAND_OVER),
        ("handoff", [SEARCH, LOOKUP], 7, CALL_SEARCH),
        ("handoff", [], 0, NO_TOOLS),
        ("parallel:3", [SEARCH, LOOKUP], 6, Turn(calls=CALL_SEARCH.calls * 3)),
        ("parallel:1", [SEARCH], 0, CALL_SEARCH),
        ("parallel:3", [], 0, NO_TOOLS),
        ("alternate", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("alternate", [SEARCH, LOOKUP], 1, CALL_LOOKUP),
        ("alternate", [SEARCH, LOOKUP], 6, CALL_SEARCH),
        ("alternate", [SEARCH], 6, CALL_SEARCH),
        ("alternate", [SEARCH], 7, SEARCH_AGAIN),
        ("alternate", [], 0, NO_TOOLS),
        ("cycle:1", [SEARCH, LOOKUP], 5, CALL_SEARCH),
        ("cycle:3", [SEARCH, LOOKUP], 3, CALL_SEARCH),
        ("cycle:3", [SEARCH, LOOKUP], 4, CALL_LOOKUP),
        ("cycle:3", [SEARCH, LOOKUP], 5, SEARCH_AGAIN),
        ("cycle:3", [], 5, NO_TOOLS),
        ("varying", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("varying", [SEARCH, LOOKUP], 1, SEARCH_AGAIN),
        ("varying", [], 1, NO_TOOLS),
        ("slow:1.5", [SEARCH], 3, replace(CALL_SEARCH, delay_s=1.5)),
        ("slow:2", [], 3, replace(NO_TOOLS, delay_s=2)),
        ("finish:1", [SEARCH], 0, FINAL_ANSWER),
        ("finish:3", [SEARCH, LOOKUP], 0, CALL_SEARCH),
        ("finish:3", [SEARCH, LOOKUP], 1, CALL_LOOKUP),
        ("finish:3", [SEARCH, LOOKUP], 2, FINAL_ANSWER),
        ("finish:3", [SEARCH], 1, SEARCH_AGAIN),
        ("finish:3", [], 1, NO_TOOLS),
        ("poll", [SEARCH, JOB_STATUS], 0, CALL_JOB_STATUS),
        ("poll", [SEARCH, JOB_STATUS], 11, CALL_JOB_STATUS),
        ("poll", [SEARCH, JOB_STATUS], 12, FINAL_ANSWER),
        ("poll", [SEARCH], 11, CALL_SEARCH),
        ("poll", [], 0, NO_TOOLS),
        ("poll:2", [SEARCH], 1, CALL_SEARCH),
        ("poll:2", [SEARCH], 2, FINAL_ANSWER),
        ("error_tool", [SEARCH], 9, calling("search", {"query": "does-not-exist"})),
        ("error_tool", [], 9, NO_TOOLS),
        ("unknown_tool", [SEARCH], 9, calling("no_such_tool", {})),
        ("unknown_tool", [OfferedTool(name="no_such_tool")], 9, calling("no_such_tool_", {})),
        ("unknown_tool", [], 9, NO_TOOLS),
        ("misfit_arguments", [SEARCH], 9, calling("search", {"unexpected": "alpha"})),
        (
            "bad_arguments",
            [SEARCH],
            9,
            calling("search", {"unexpected": "alpha"}, text='{"unexpected": alpha}'),
        ),
        ("bad_arguments", [], 9, NO_TOOLS),
        ("truncated", [SEARCH], 9, Turn(text="The final a", finish_reason="length")),
        (
            "truncated_call",
            [SEARCH],
            9,
            replace(calling("search", {}, text='{"query"'), finish_reason="length"),
        ),
        (
            "truncated_call",
            [LOOKUP],
            9,
            replace(calling("lookup", {}, text="{"), finish_reason="length"),
        ),
        ("truncated_call", [], 9, NO_TOOLS),
        ("filtered", [SEARCH], 9, Turn(finish_reason="content_filter")),
        ("empty", [SEARCH], 9, Turn(finish_reason="stop")),
        ("http_error:503", [SEARCH], 9, Turn(error=ScriptedError(status=503))),
    ],
)
def test_a_script_sees_only_tools_and_the_number_of_results(
    script: str, tools: Sequence[OfferedTool], results: int, expected: Turn
) -> None:
    assert script_named(script)(tools, results) == expected


def test_a_script_that_does_not_exist_is_named_with_those_that_do() -> None:
    assert find_script("gpt-4o") is None
    with pytest.raises(ValueError, match=r"'gpt-4o' does not exist.*'endless', 'alternate'"):
        script_named("gpt-4o")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("parallel:many", "'parallel:N' with a whole number from 1 to 1000"),
        ("parallel:0", "'parallel:N' with"),
        ("parallel:", "'parallel:N' with"),
        ("cycle:1001", "'cycle:N' with"),
        ("cycle:²", "'cycle:N' with"),
        ("finish:-1", "'finish:N' with"),
        ("finish:1.5", "'finish:N' with"),
        ("poll:0", "'poll:N' with"),
        ("slow:never", "'slow:S' with a number of seconds from 0 to 3600"),
        ("slow:nan", "'slow:S' with"),
        ("slow:3601", "'slow:S' with"),
        ("slow:.", "'slow:S' with"),
        ("slow:1.2.3", "'slow:S' with"),
        ("http_error:200", "'http_error:CODE' with a whole number from 400 to 599"),
        ("http_error:600", "'http_error:CODE' with"),
        ("endless:3", "does not exist"),
        (":3", "does not exist"),
        ("", "does not exist"),
    ],
)
def test_a_number_that_cannot_be_is_named_with_those_that_can(name: str, said: str) -> None:
    assert find_script(name) is None
    with pytest.raises(ValueError, match=re.escape(said)):
        script_named(name)


def test_every_script_is_described_as_it_is_called() -> None:
    described = {name for name in DESCRIPTIONS if ":" not in name}
    assert described == set(SCRIPTS)
    assert {name.partition(":")[0] for name in DESCRIPTIONS if ":" in name} == set(FAMILIES)
    assert all(
        name.endswith(f":{FAMILIES[name.partition(':')[0]].letter}")
        for name in DESCRIPTIONS
        if ":" in name
    )


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_every_script_stands_in_the_documentation(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "model-server.md"
    assert f"`{name}`" in page.read_text()


@pytest.mark.parametrize("name", [*SCRIPTS, "cycle:3", "finish:4", "poll:3", "http_error:500"])
def test_a_script_says_the_same_each_time_that_it_is_told_the_same(name: str) -> None:
    tools = [SEARCH, LOOKUP]
    backwards = [script_named(name)(tools, results) for results in range(20, -1, -1)]
    find_script.cache_clear()
    assert [script_named(name)(tools, results) for results in range(21)] == backwards[::-1]


@pytest.mark.parametrize(
    ("script", "different"), [("varying", 50), ("cycle:7", 7), ("alternate", 2)]
)
@pytest.mark.parametrize("tools", [[SEARCH], [SEARCH, SEARCH_MORE]], ids=["one tool", "two tools"])
def test_calls_differ_as_often_as_the_script_says(
    script: str, different: int, tools: list[OfferedTool]
) -> None:
    turns = [script_named(script)(tools, results) for results in range(50)]
    assert len({json.dumps(msgspec.to_builtins(turn.calls)) for turn in turns}) == different
