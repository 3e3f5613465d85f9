"""Sample arguments: valid for the schema, and the same every time."""

from __future__ import annotations

import json

import pytest

from otel_loopguard.testing.samples import MISSING, sample_arguments, variation


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        ({"properties": {"a": {"type": "integer"}, "b": {"type": "number"}}}, {"a": 1, "b": 1}),
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "alpha"}),
        ({"properties": {"a": {"type": "boolean"}}}, {"a": True}),
        ({"properties": {"a": {"type": "array"}}}, {"a": []}),
        ({"properties": {"a": {"type": "null"}}}, {"a": None}),
        ({"properties": {"a": {"type": ["integer", "null"]}}}, {"a": 1}),
        ({"properties": {"a": {"type": "object", "properties": {"b": {}}}}}, {"a": {"b": "alpha"}}),
        ({"properties": {"a": {"enum": ["north", "south"]}}}, {"a": "north"}),
        ({"properties": {"a": {"const": 7}}}, {"a": 7}),
        ({"properties": {"a": {"default": "d", "examples": ["e"]}}}, {"a": "d"}),
        ({"properties": {"a": {"type": "string", "examples": ["e", "f"]}}}, {"a": "e"}),
        ({"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}, {"a": 1}),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/Place"}},
                "$defs": {"Place": {"type": "object", "properties": {"city": {}}}},
            },
            {"a": {"city": "alpha"}},
        ),
    ],
)
def test_sample_arguments_are_valid_and_always_the_same(
    schema: dict[str, object], expected: object
) -> None:
    assert sample_arguments(schema) == expected
    assert sample_arguments(schema) == sample_arguments(schema)


def test_a_schema_that_requires_itself_ends() -> None:
    schema: dict[str, object] = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert "None" in str(sample_arguments(schema))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "integer", "exclusiveMinimum": 10}, 11),
        ({"type": "integer", "maximum": -5}, -1005),
        ({"type": "integer", "exclusiveMaximum": 1, "minimum": 0}, 0),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "minimum": -3}, 1),
        ({"type": "integer", "minimum": 2.5}, 3),
        ({"type": "integer", "maximum": -0.5, "minimum": -1.5}, -1),
        ({"type": "integer", "exclusiveMinimum": 2.5}, 3),
        ({"type": "integer", "exclusiveMaximum": 0.5, "minimum": 0}, 0),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 5),
        ({"type": "number", "minimum": 2.5}, 3),
        ({"type": "number", "minimum": 0.5, "maximum": 0.75}, 0.625),
        ({"type": "number", "minimum": 0.5, "maximum": 0.5}, 0.5),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, 0.25),
        ({"type": "number", "maximum": 0.5, "minimum": 0}, 0),
        ({"type": "string", "minLength": 8}, "aaaalpha"),
        ({"type": "string", "maxLength": 3}, "pha"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "string", "format": "date-time"}, "2026-01-01T12:00:00Z"),
        ({"type": "string", "format": "email"}, "alpha1@example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com/1"),
        ({"type": "string", "format": "uuid"}, "00000000-0000-4000-8000-000000000001"),
        ({"type": "string", "format": "ipv9"}, "alpha"),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
    ],
)
def test_a_value_is_in_its_bounds_and_its_format(schema: dict[str, object], expected: object):
    assert sample_arguments({"properties": {"a": schema}}) == {"a": expected}


@pytest.mark.parametrize(
    ("schema", "different"),
    [
        ({"type": "string"}, 20),
        ({"type": "string", "default": "d", "examples": ["e"]}, 20),
        ({"type": "string", "maxLength": 2}, 20),
        ({"type": "string", "format": "date"}, 20),
        ({"type": "string", "format": "uuid"}, 20),
        ({"type": "integer"}, 20),
        ({"type": "integer", "minimum": 100}, 20),
        ({"type": "integer", "maximum": 5}, 20),
        ({"type": "integer", "minimum": 0, "maximum": 4}, 5),
        ({"type": "number", "minimum": 0.5, "maximum": 0.9}, 20),
        ({"type": "array", "items": {"type": "string"}}, 20),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 20),
        ({"enum": ["north", "south", "west"]}, 3),
        ({"type": "boolean"}, 2),
        ({"const": 7}, 1),
    ],
)
def test_variations_differ_where_values_can(schema: dict[str, object], different: int):
    tool: dict[str, object] = {"properties": {"a": schema}, "required": ["a"]}
    seen = {json.dumps(sample_arguments(tool, variation(number))) for number in range(20)}
    assert len(seen) == different


def test_a_variation_fills_what_is_not_required_where_nothing_else_could_differ():
    tool: dict[str, object] = {"properties": {"a": {"type": "string"}}, "required": []}
    assert sample_arguments(tool) == sample_arguments(tool, variation(0)) == {}
    assert sample_arguments(tool, variation(3)) == {"a": "alpha 3"}


def test_what_is_missing_is_named_validly():
    tool: dict[str, object] = {
        "properties": {
            "path": {"type": "string", "default": "README.md"},
            "line": {"type": "integer"},
            "mode": {"enum": ["r"]},
        }
    }
    assert sample_arguments(tool, MISSING) == {
        "path": "does-not-exist",
        "line": 404_404,
        "mode": "r",
    }


@pytest.mark.parametrize("lowest", [-2.5, -0.1, 0, 0.1, 0.5, 1.5, 2])
@pytest.mark.parametrize("width", [0.01, 0.3, 1, 2.5])
@pytest.mark.parametrize("excluded", [False, True])
def test_a_number_is_never_outside_of_its_bounds(lowest: float, width: float, *, excluded: bool):
    highest = lowest + width
    names = ("exclusiveMinimum", "exclusiveMaximum") if excluded else ("minimum", "maximum")
    schema = {"type": "number", **dict(zip(names, (lowest, highest), strict=True))}
    tool: dict[str, object] = {"properties": {"a": schema}}
    for sample in (MISSING, *map(variation, range(20))):
        value = sample_arguments(tool, sample)["a"]
        assert isinstance(value, (int, float))
        assert lowest < value < highest if excluded else lowest <= value <= highest


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "minItems": 10_001}, "minItems: 10,001 is more than the 10,000"),
        ({"type": "string", "minLength": 10**12}, "minLength: 1,000,000,000,000 is more than"),
    ],
)
def test_what_would_fill_the_memory_is_not_made(schema: dict[str, object], said: str):
    with pytest.raises(ValueError, match=said):
        sample_arguments({"properties": {"a": schema}})
    assert sample_arguments({"properties": {"a": {"type": "string", "maxLength": 10**12}}}) == {
        "a": "alpha"
    }
