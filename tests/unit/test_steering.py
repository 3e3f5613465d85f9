"""Hints to models: when there is one, and what it says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otel_loopguard import Policy, PolicyError
from otel_loopguard.decisions import Violation
from otel_loopguard.hints import Hints
from otel_loopguard.options.steering import HINT


def violation(
    rule: str = "repeated_result", action: Any = "warn", tool: str = "search"
) -> Violation:
    return Violation(
        rule=rule,
        reason="R_DETECTED",
        action=action,
        phase="post",
        step=6,
        count=3,
        threshold=3,
        tool=tool,
    )


def test_each_rule_is_told_of_once_and_only_warnings_are():
    hints = Hints()
    assert hints.take("") is None
    hints.note(violation(action="abort"))
    assert hints.take("") is None
    hints.note(violation())
    assert hints.take("") == violation()
    hints.note(violation())
    assert hints.take("") is None


def test_what_was_found_meanwhile_is_told_of_in_its_order():
    hints = Hints()
    found = [violation(), violation("repeated_output"), violation("no_novelty")]
    for each in found:
        hints.note(each)
    assert [hints.take(""), hints.take(""), hints.take(""), hints.take("")] == [*found, None]


@pytest.mark.parametrize("rule", ["truncated_turns", "extra_turn"])
def test_what_a_model_could_do_nothing_about_is_not_told(rule: str):
    hints = Hints()
    hints.note(violation(rule))
    limit = violation("idle_turns")
    hints.note(msgspec.structs.replace(limit, reason="MAX_TURNS_WITHOUT_TOOL_EXCEEDED"))
    assert hints.take("") is None


def test_each_agent_is_told_of_its_own():
    hints = Hints()
    own = msgspec.structs.replace(violation(), agent="writer")
    hints.note(own)
    assert hints.take("scout") is None
    assert hints.take("writer") == own
    hints.note(violation("repeated_output"))
    assert hints.take("scout") == violation("repeated_output"), "nobody knows whose it is"


def test_what_it_says():
    assert violation().hint(HINT) == (
        "A note from the loop guard: the tool 'search' came up 3 times without bringing anything "
        "new (repeated_result). Do not do the same again. Try something else, or answer with what "
        "you have."
    )
    stagnation = msgspec.structs.replace(violation("stagnation"), count=17.31, wasted_steps=6)
    assert stagnation.hint("{count}") == "6", "not its score"
    assert violation(tool="").hint("{{{subject}}}") == "{your own answers}"


@pytest.mark.parametrize(
    ("said", "text"),
    [(None, ""), (False, ""), (True, HINT), ("Stop it.", "Stop it."), ("{rule}", "{rule}")],
)
def test_the_option(said: Any, text: str):
    assert Policy(steer=said).settings.steer == text
    assert Policy.from_mapping({"steer": said}).settings.steer == text
    over = Policy.from_mapping({"steer": said}, base=Policy(steer="before")).settings.steer
    assert over == ("before" if said is None else text)


@pytest.mark.parametrize(
    "said", [1, 0.5, [], "{tool}", "{rule.x}", "{rule[0]}", "{rule!r}", "{count:g}", "{", "}", "{}"]
)
def test_what_cannot_be_filled_in(said: Any):
    with pytest.raises(PolicyError, match=r"^steer: expected true, false, or a text in which "):
        Policy(steer=said)


def test_it_is_part_of_what_a_policy_is():
    policy = Policy(steer="Stop it.")
    assert policy != Policy()
    assert repr(policy) == "Policy(steer='Stop it.')"
