"""All that is wrong with a policy file: each mistake once, with the line that it stands in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from otel_loopguard.mistakes import MISTAKES, Remark, examine
from otel_loopguard.options.tables import SECTIONS
from otel_loopguard.options.toml_text import DEEPEST
from otel_loopguard.policy import Policy, PolicyError
from tests.unit.test_policy_laws import WORDS

BAD = """\
mode = "enforc"

[limits]
max_steps = -1          # not so
max_stepz = 3

[rules]
repeated_call = { warn = "x", abort = -3 }

[tools."a b"]
error_patterns = [
  "ok",
  "(",
  "",
]
poll = 1

[agents."plan-*"]
limits.max_cost_usd = "x"
"what is this" = 3

[agents.planner]
tools.'a.b'.finish = 3

[usage.price]
input = 3

[masking]
keys = ["ok", "9", "a b"]

[limit]
max_steps = 3
"""


def test_every_mistake_has_its_line():
    found = examine(BAD)

    assert found.policy is None
    assert [(remark.line, remark.path) for remark in found.mistakes] == [
        (1, "mode"),
        (4, "limits.max_steps"),
        (5, "limits.max_stepz"),
        (8, "rules.repeated_call.warn"),
        (8, "rules.repeated_call.abort"),
        (13, 'tools."a b".error_patterns[1]'),
        (14, 'tools."a b".error_patterns[2]'),
        (16, 'tools."a b".poll'),
        (19, 'agents."plan-*".limits.max_cost_usd'),
        (20, 'agents."plan-*"."what is this"'),
        (23, 'agents."planner".tools."a.b".finish'),
        (25, "usage.price.input_per_m_usd"),
        (25, "usage.price.output_per_m_usd"),
        (26, "usage.price.input"),
        (29, "masking.keys[1]"),
        (29, "masking.keys[2]"),
        (31, "limit"),
    ]
    assert all(remark.message.startswith(remark.path) for remark in found.mistakes)
    assert found.mistakes[2].message.endswith("did you mean 'max_steps'?")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[limits]\nmax_steps = = 3", 2),
        ("[limits]\n[limits]\n", 2),
        ('\n\nmode = "', 3),
        ("x = 1\n\n\n[limits", 4),
    ],
)
def test_what_is_no_toml_has_its_line(text: str, line: int):
    [remark] = examine(text).mistakes

    assert remark.message.startswith("expected TOML, but ")
    assert (remark.line, remark.path) == (line, "")


DEEP = "more than 30 tables and lists stand in one another"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"limits.max_steps = {5000 * '1'}", "a number in it has more than 4300 digits"),
        (f"a = {5000 * '['}", DEEP),
        (f"a = {2000 * '{a = '}1{2000 * '}'}", DEEP),
        (f"{'.'.join(3000 * 'a')} = 1", DEEP),
        (f"a = {DEEPEST * '['}{DEEPEST * ']'}", DEEP),
    ],
)
def test_what_no_stack_can_follow_is_a_mistake(text: str, why: str):
    assert examine(text).mistakes == (Remark(message=f"expected TOML, but {why}"),)


def test_what_stands_just_deep_enough_is_read():
    [remark] = examine(f"a = {(DEEPEST - 1) * '['}{(DEEPEST - 1) * ']'}").mistakes

    assert (remark.path, remark.line) == ("a", 1)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            "[usage.price]\ninput_per_m_usd = '1'\noutput_per_m_usd = 10",
            [(2, "usage.price.input_per_m_usd")],
        ),
        (
            "[usage.prices.m]\noutput_per_m_usd = -1",
            [(1, "usage.prices.m.input_per_m_usd"), (2, "usage.prices.m.output_per_m_usd")],
        ),
        ("[rules.similar_calls]\nwarn = '3'", [(2, "rules.similar_calls.warn")]),
        ("[rules.sweep]\nwarm = 3", [(2, "rules.sweep.warm")]),
        (
            "[agents.a.tools.t.rules]\nsweep.warm = 3\nsimilar_calls = true",
            [
                (2, 'agents."a".tools.t.rules.sweep.warm'),
                (3, 'agents."a".tools.t.rules.similar_calls'),
            ],
        ),
    ],
)
def test_what_follows_from_a_mistake_is_none(text: str, places: list[tuple[int, str]]):
    assert [(remark.line, remark.path) for remark in examine(text).mistakes] == places


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            '[tools.search]\npoll = 5\n[tools."search.poll"]\npoll = true',
            [(2, "tools.search.poll")],
        ),
        (
            '[tools."search.poll"]\npoll = true\n[tools.search]\npoll = 5',
            [(4, "tools.search.poll")],
        ),
        ('[tools."a[0]"]\npoll = 1\n[tools.a]\npoll = true', [(2, 'tools."a[0]".poll')]),
        (
            '"limits.max_steps" = 3\n[limits]\nmax_steps = 3\n["limits.x"]',
            [(1, '"limits.max_steps"'), (4, '"limits.x"')],
        ),
        ('"" = 1\n[limits]\n"" = 2', [(1, '""'), (3, 'limits.""')]),
    ],
)
def test_a_name_with_a_dot_is_not_taken_for_a_path(text: str, places: list[tuple[int, str]]):
    assert [(remark.line, remark.path) for remark in examine(text).mistakes] == places


def test_doubts_have_theirs():
    found = examine(
        '[limits]\ncompare_arguments = false\n\n[agents."a*"]\n\n[agents."ab"]\n\n[tools."x["]\n'
    )

    assert found.policy is not None
    assert found.policy.warnings == tuple(doubt.message for doubt in found.doubts)
    assert [(doubt.line, doubt.path) for doubt in found.doubts] == [
        (6, 'agents."ab"'),
        (8, 'tools."x["'),
        (2, "limits.compare_arguments"),
    ]


def test_a_file_without_mistakes_is_a_policy():
    text = '[limits]\nmax_steps = 3\n[tools."*"]\npoll = true\n'

    assert examine(text).policy == Policy.from_toml(text)
    assert examine("").policy == Policy()


def test_there_is_an_end_of_it():
    text = "[limits]\n" + "".join(f"x{n} = 1\n" for n in range(3 * MISTAKES))

    *named, last = examine(text).mistakes
    assert [remark.line for remark in named] == [*range(2, MISTAKES + 2)]
    assert last == Remark(
        message="there are more mistakes than the 100 that are named; correct those first"
    )


def test_as_many_as_are_named_are_not_said_to_be_more():
    text = "[limits]\n" + "".join(f"x{n} = 1\n" for n in range(MISTAKES))

    assert [remark.line for remark in examine(text).mistakes] == [*range(2, MISTAKES + 2)]


def test_names_that_errors_cut_to_the_same_text_come_to_an_end():
    long = 300 * "m"
    text = (
        f"[usage.prices.{long}]\noutput_per_m_usd = 1\n"
        f"[usage.prices.{long}2]\ninput_per_m_usd = 1\noutput_per_m_usd = 1\n"
    )

    [remark] = examine(text).mistakes
    assert remark.message.startswith(f"usage.prices.{long[:200]}....input_per_m_usd: is missing; ")


def toml(value: Any) -> str:
    """Write a value as TOML does within a line."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        inside = ", ".join(f"{toml(key)} = {toml(each)}" for key, each in entries.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, cast('list[object]', value)))}]"
    return json.dumps(value, ensure_ascii=False)


letters = some.characters(exclude_categories=("Cc", "Cs"))  # TOML escapes them as JSON does not
words = some.sampled_from(WORDS)
anything = some.recursive(
    some.booleans() | some.integers(-3, 300) | words | some.text(letters, max_size=4),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(words | some.text(letters, max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)


def judged(said: Mapping[str, Any]) -> Policy | str:
    """Return the policy, or what is said of the first mistake."""
    try:
        return Policy.from_mapping(said)
    except PolicyError as error:
        return str(error)


@given(some.dictionaries(some.sampled_from(SECTIONS), anything))
def test_every_mistake_is_found_in_a_line_and_the_rest_would_do(said: Mapping[str, Any]):
    found = examine("".join(f"{name} = {toml(value)}\n" for name, value in said.items()))
    judgement, sections = judged(said), [*said]

    if isinstance(judgement, Policy):
        assert (found.policy, found.mistakes) == (judgement, ())
        return
    assert judgement in {remark.message for remark in found.mistakes}
    for remark in found.mistakes:
        assert remark.line is not None
        assert remark.path.startswith(sections[remark.line - 1])
