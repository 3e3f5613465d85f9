"""Which arguments of a call are what its tool takes, and which schemas are judged at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from otel_loopguard import UNKNOWN, PolicyError, Tool
from otel_loopguard.agent_loop.messages import described, text_of
from otel_loopguard.agent_loop.schema import problem_in
from otel_loopguard.agent_loop.tools import InvalidArgumentsError

TREE: dict[str, Any] = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "additionalProperties": False,
        }
    },
}


JUDGED: list[Any] = [
    ({"type": "string"}, ["x", ""], [5, None, True, []]),
    ({"type": "integer"}, [5, -1, 5.0], [5.5, "5", True, None, float("inf")]),
    ({"type": "number"}, [5, 5.5], ["5", False]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "null"}, [None], [0, ""]),
    ({"type": "array"}, [[], [1]], ["x", {}]),
    ({"type": "object"}, [{}, {"a": 1}], [[], "{}"]),
    ({"type": ["string", "null"]}, ["x", None], [5]),
    ({"enum": ["a", 1, None]}, ["a", 1, 1.0, None], ["b", True, "1", 0]),
    ({"const": "1"}, ["1"], [1, "2"]),
    ({"const": [1, {"a": 2}]}, [[1, {"a": 2}]], [[1], [1, {"a": True}]]),
    ({"required": ["a", "b"]}, [{"a": 1, "b": None}, "no object"], [{"a": 1}, {}]),
    ({"properties": {"a": {"type": "string"}}}, [{"a": "x"}, {"b": 1}, "x"], [{"a": 1}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}, 5], [{"b": 1}]),
    ({"additionalProperties": {"type": "string"}}, [{"a": "x"}, 5], [{"a": 1}]),
    ({"additionalProperties": True}, [{"a": 1}], []),
    ({"items": {"type": "integer"}}, [[1, 2], [], "x"], [[1, "2"]]),
    ({"items": False}, [[]], [[1]]),
    ({"minimum": 1}, [1, 2.5, "0", True], [0, 0.5]),
    ({"maximum": 1}, [1, 0.5], [1.5]),
    ({"exclusiveMinimum": 1}, [1.5], [1]),
    ({"exclusiveMaximum": 1}, [0.5], [1]),
    ({"minLength": 2}, ["ab", 5], ["a"]),
    ({"maxLength": 2}, ["ab", 555], ["abc"]),
    ({"pattern": "^a+$"}, ["aa", 5], ["ab"]),
    ({"minItems": 1}, [[1], "x"], [[]]),
    ({"maxItems": 1}, [[1], "xx"], [[1, 2]]),
    ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["x", 5], [1]),
    ({"oneOf": [{"type": "number"}, {"minimum": 5}]}, [1, "x"], [6]),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, ["x", None], [6]),
    ({"allOf": [{"type": "number"}, {"minimum": 5}]}, [5], [1, "x"]),
    (TREE, [{}, {"below": [{"below": []}]}], [{"below": [{"above": []}]}, []]),
    (True, [1], []),
    (False, [], [1]),
    ({"title": "T", "description": "d", "default": 1, "format": "uri"}, [1, "x"], []),
]


@pytest.mark.parametrize(
    ("schema", "good", "bad"), JUDGED, ids=[repr(schema)[:60] for schema, _, _ in JUDGED]
)
def test_a_value_is_what_its_schema_says(schema: Any, good: list[Any], bad: list[Any]):
    assert [problem_in(value, schema, "a") for value in good] == [None] * len(good)
    problems = [problem_in(value, schema, "a") for value in bad]
    assert all(problem is not None and problem.startswith("a") for problem in problems), problems
    Tool(name="t", call=dict, parameters={"properties": {"a": schema}} | defined(schema))


def defined(schema: Any) -> dict[str, Any]:
    return {"$defs": schema["$defs"]} if schema is TREE else {}


PROBLEMS: list[Any] = [
    ({"type": ["string", "null"]}, 5, "a: expected string or null, got 5"),
    (
        {"properties": {"b": {"items": {"type": "string"}}}},
        {"b": ["x", 1]},
        "a.b[1]: expected ",
    ),
    ({"required": ["b", "c"]}, {}, "a: 'b', 'c' missing"),
    ({"additionalProperties": {"minimum": 1}}, {"b": 0}, "a.b: expected minimum 1, got 0"),
    (
        {"properties": {"b": {}, "c": {}}, "additionalProperties": False},
        {"d": 1},
        "a: there is no 'd'; expected b, c",
    ),
    ({"enum": ["b", 1]}, "c", "a: expected 'b' or 1, got 'c'"),
    (
        {"anyOf": [{"type": "null"}, {"minimum": 5}]},
        1,
        "a: expected null, got 1; or a: expected m",
    ),
    ({"oneOf": [{}, {}]}, 1, "a: fits 2 of the forms that it may have"),
    (False, 1, "a: nothing is allowed here"),
]


@pytest.mark.parametrize(
    ("schema", "value", "expected"), PROBLEMS, ids=lambda each: repr(each)[:60]
)
def test_a_problem_says_where_and_what_was_expected(schema: Any, value: Any, expected: str):
    assert (problem_in(value, schema, "a") or "").startswith(expected)


REFUSED: list[Any] = [
    ({"propertyNames": {}}, "parameters: expected keywords that are judged here"),
    ({"properties": {"q": {"not": {}}}}, "parameters.properties.q: expected keywords"),
    ({"items": {"if": {}}}, "parameters.items: expected keywords"),
    ({"anyOf": [{}, {"dependentRequired": {}}]}, r"parameters.anyOf\[1\]: expected keywords"),
    ({"additionalProperties": {"not": {}}}, "parameters.additionalProperties: expected key"),
    ({"$defs": {"D": {"not": {}}}}, r'parameters."\$defs".D: expected keywords'),
    ({"$ref": "https://example.com/s"}, r'parameters."\$ref": expected a reference to one'),
    ({"$ref": "#/$defs/Missing"}, r'parameters."\$ref": expected a reference to one'),
    ({"type": "str"}, "parameters.type: expected object, array, string"),
    ({"type": ["string", "none"]}, "parameters.type: expected object, array, string"),
    ("object", "parameters: expected a JSON Schema"),
    ({"type": None}, "parameters.type: expected object, array, string"),
    ({"type": []}, "parameters.type: expected object, array, string"),
    ({"type": [["string"]]}, "parameters.type: expected object, array, string"),
    ({"properties": []}, "parameters.properties: expected a mapping of names"),
    ({"properties": {1: {}}}, "parameters.properties: expected a mapping of names"),
    ({"$defs": [], "$ref": "#/$defs/A"}, r'parameters."\$defs": expected a mapping of names'),
    ({"$ref": "#/$defs/A", "$defs": []}, r'parameters."\$ref": expected a reference'),
    ({"$ref": 5}, r'parameters."\$ref": expected a reference'),
    ({"definitions": 5}, "parameters.definitions: expected a mapping of names"),
    ({"anyOf": 5}, "parameters.anyOf: expected a list of schemas, got 5"),
    ({"oneOf": {}}, "parameters.oneOf: expected a list of schemas"),
    ({"allOf": []}, "parameters.allOf: expected a list of schemas"),
    ({"items": [{}]}, "parameters.items: expected a JSON Schema"),
    ({"additionalProperties": None}, "parameters.additionalProperties: expected a JSON Schema"),
    ({"pattern": "("}, r"parameters.pattern: expected a regular expression, got '\('"),
    ({"pattern": 5}, "parameters.pattern: expected a regular expression, got 5"),
    ({"pattern": b"a"}, "parameters.pattern: expected a regular expression, got b'a'"),
    ({"required": "query"}, "parameters.required: expected a list of names, got 'query'"),
    ({"required": [5]}, "parameters.required: expected a list of names"),
    ({"enum": 5}, "parameters.enum: expected a list of values, got 5"),
    ({"enum": "ab"}, "parameters.enum: expected a list of values, got 'ab'"),
    ({"minimum": "1"}, "parameters.minimum: expected a number, got '1'"),
    ({"exclusiveMaximum": True}, "parameters.exclusiveMaximum: expected a number, got True"),
    ({"maximum": float("nan")}, "parameters.maximum: expected a number, got nan"),
    ({"maxLength": "5"}, "parameters.maxLength: expected a whole number from 0, got '5'"),
    ({"minItems": -1}, "parameters.minItems: expected a whole number from 0, got -1"),
    (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
        r'parameters."\$defs".A: expected a schema that does not come back to itself',
    ),
    (
        {"$defs": {"A": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]}}},
        r'parameters."\$defs".A.anyOf\[1\]: expected a schema that does not come back',
    ),
    (
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/B"}}},
        r'parameters."\$defs".B: expected a schema that does not come back to itself',
    ),
]


@pytest.mark.parametrize(
    ("schema", "expected"), REFUSED, ids=[repr(each[0])[:60] for each in REFUSED]
)
def test_a_schema_that_is_not_judged_is_refused_when_the_tool_is_made(schema: Any, expected: str):
    with pytest.raises(PolicyError, match=expected):
        Tool(name="search", call=dict, parameters=schema)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"q": 1}, {"q": 1}),
        ('{"q": 1}', {"q": 1}),
        (b'{"q": 1}', {"q": 1}),
        (UNKNOWN, {}),
        (None, {}),
        ("", {}),
    ],
    ids=repr,
)
def test_arguments_come_as_a_mapping_as_text_or_not_at_all(given: object, expected: object):
    assert Tool(name="search", call=dict).accepted(given) == expected


@pytest.mark.parametrize("given", ["{'q': 1}", '{"q": ', "[1]", "5", [1], 5, True], ids=repr)
def test_arguments_that_are_no_object_are_refused(given: object):
    with pytest.raises(InvalidArgumentsError, match="arguments: expected a JSON object"):
        Tool(name="search", call=dict).accepted(given)


class Search(msgspec.Struct):
    q: str
    limit: int = 5


def convert(given: dict[str, Any]) -> Search:
    return msgspec.convert(given, Search)


def is_short(given: dict[str, Any]) -> bool:
    return len(given["q"]) < 5


@pytest.mark.parametrize(
    ("check", "given", "problem"),
    [
        (convert, {"q": "x"}, None),
        (convert, {"q": 5}, "arguments: Expected `str`, got `int`"),
        (is_short, {"q": "x"}, None),
        (is_short, {"q": "long enough"}, "arguments: not what this tool takes"),
        (is_short, {}, "arguments: 'q'"),
    ],
    ids=["type", "wrong type", "true", "false", "raises"],
)
def test_a_tool_may_judge_itself(check: Any, given: dict[str, Any], problem: str | None):
    tool = Tool(name="search", call=dict, check=check)
    if problem is None:
        assert tool.accepted(given) == given
        return
    with pytest.raises(InvalidArgumentsError, match=problem):
        tool.accepted(given)


def test_a_tool_judges_what_its_schema_lets_through_only():
    given: list[dict[str, Any]] = []
    schema = {"required": ["q"]}
    tool = Tool(name="search", call=dict, parameters=schema, check=given.append)
    tool.accepted({"q": 1})
    with pytest.raises(InvalidArgumentsError, match="'q' missing"):
        tool.accepted({})

    assert given == [{"q": 1}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"name": ""}, "Tool.name: expected a name"),
        ({"name": 5}, "Tool.name: expected a name"),
        ({"call": "search"}, r"Tool\('search'\).call: expected a callable"),
        ({"check": Search(q="x")}, r"Tool\('search'\).check: expected a callable or None"),
    ],
    ids=["no name", "a number", "no function", "no check"],
)
def test_what_is_no_tool_is_refused(options: dict[str, Any], expected: str):
    made: Any = {"name": "search", "call": dict, **options}
    with pytest.raises(PolicyError, match=expected):
        Tool(**made)


class Unreadable(Exception):  # noqa: N818 -- what is tried is that it has no text
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("found", "found"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (None, "null"),
        (Search(q="x"), '{"q":"x","limit":5}'),
        (1j, '"1j"'),
        (Unreadable(), "a Unreadable that cannot be shown"),
    ],
    ids=["text", "data", "nothing", "struct", "other", "unreadable"],
)
def test_a_result_becomes_a_text(value: object, text: str):
    assert text_of(value) == text


def test_an_error_becomes_a_text():
    assert described(KeyError("x")) == "KeyError: 'x'"
    assert described(Unreadable()) == "Unreadable"
