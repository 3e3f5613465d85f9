"""When two names mean one tool."""

from __future__ import annotations

import pytest

from otel_loopguard.tool_names import same_tool


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("search", "search", True),
        ("mcp__srv__search", "search", True),
        ("search", "srv.search", True),
        ("plugin-search", "search", True),
        ("srv/search", "search", True),
        ("tools/call search", "search", True),
        ("srv:search", "search", True),
        ("research", "search", False),
        ("search", "lookup", False),
        ("search", "searc", False),
        ("search", "", False),
    ],
)
def test_servers_and_plugins_put_theirs_before_the_name(
    one: str, other: str, *, same: bool
) -> None:
    assert same_tool(one, other) is same_tool(other, one) is same
