"""Writes otel_loopguard/loopguard.schema.json, for editors. `make policy-schema` runs it.

    python -m scripts.policy_schema

The schema is made of what reads the options, and of what docs/policy.md says of them. What a schema
cannot say it leaves to `otel-loopguard check-config`: whether a regular expression is one, and that
`1.0` is no whole number.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from otel_loopguard.detectors import DEFAULT_RULES
from otel_loopguard.detectors._stagnation_classes import STEP_CLASSES, WEIGHTS
from otel_loopguard.options.kinds import LARGEST, AmountOf, CountBetween, count_of, switch_of
from otel_loopguard.options.limits import READERS
from otel_loopguard.options.rules import HEAVIEST, RULES, STAGNATION, Whose
from otel_loopguard.options.tables import SECTIONS
from otel_loopguard.settings import Limits, ToolOptions
from otel_loopguard.values.volatile import KEY_NAME

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "otel_loopguard" / "loopguard.schema.json"
PAGE = ROOT / "docs" / "policy.md"

Schema: TypeAlias = dict[str, Any]

SWITCH: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}
AMOUNT: Schema = {"type": "number", "minimum": 0, "maximum": sys.float_info.max}
NAMES: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
PATTERNS: Schema = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "format": "regex"},
}
LEVELS = ("warn", "abort")


def main() -> int:
    TARGET.write_text(written(), encoding="utf-8")
    print(TARGET)
    return 0


def written() -> str:
    """Return the text of the shipped file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """Return the schema of a `loopguard.toml`."""
    sections: Schema = {
        "mode": {"enum": ["observe", "enforce"]},
        "scope": {"enum": ["run", "agent", "conversation"], "default": "run"},
        "steer": {"type": ["boolean", "string"], "default": False},
        "limits": _ref("limits"),
        "rules": _ref("rules_of_run"),
        "tools": _named("tool"),
        "agents": _named("agent"),
        "usage": _ref("usage"),
        "masking": _ref("masking"),
    }
    said = {re.split(r"[.\]]", name.strip("["))[0]: row[0] for name, row in rows("The file")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "loopguard.toml",
        "description": "The policy of otel-loopguard: rules and limits for AI agents.",
        **_table({name: _described(sections[name], said[name]) for name in SECTIONS}),
        "$defs": {
            "limits": _table(_limits()),
            **{f"rules_of_{whose}": _table(_rules(whose)) for whose in RULES},
            **_kinds_of_rules(),
            "tool": _table(_tool()),
            "agent": _table(_agent()),
            "price": _price(),
            "usage": _table(_usage()),
            "masking": _table(_masking()),
        },
    }


def _table(properties: Mapping[str, Schema], **more: object) -> Schema:
    return {
        "type": "object",
        "properties": {**properties},
        "additionalProperties": False,
        **more,
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _named(name: str) -> Schema:
    return {"type": "object", "additionalProperties": _ref(name)}


def _described(of: Schema, text: str) -> Schema:
    return {"description": text, **of}


def _limits() -> dict[str, Schema]:
    said = dict(rows("Limits"))
    return {name: _described(_limit(name), said[name][0]) for name in Limits.__struct_fields__}


def _limit(name: str) -> Schema:
    read = READERS.get(name, count_of)
    if isinstance(read, CountBetween):
        between = {**COUNT, "minimum": read.lowest, "maximum": read.highest}
        return {"anyOf": [between, {"const": 0}]}
    if isinstance(read, AmountOf):
        return AMOUNT
    if read is switch_of:
        return {**SWITCH, "default": getattr(Limits(), name)}
    return COUNT if read is count_of else {"type": "object", "additionalProperties": COUNT}


def _rules(whose: Whose) -> dict[str, Schema]:
    said = dict(rows("Rules"))
    return {rule: _described(_rule(rule, whose), said[rule][0]) for rule in RULES[whose]}


def _rule(rule: str, whose: Whose) -> Schema:
    line = DEFAULT_RULES.get(rule)
    if line is None:  # what is said of one agent or tool may lean on what the run says
        return _ref("rule_without_thresholds" if whose == "run" else "rule")
    default = {name: level for name in LEVELS if (level := getattr(line, name)) is not None}
    if rule != STAGNATION:
        return {**_ref("rule"), "default": default}
    return {**_ref("stagnation" if whose == "run" else "score_rule"), "default": default}


def _kinds_of_rules() -> dict[str, Schema]:
    said = dict(rows("Rules"))
    rule, by_score = (
        {
            **{name: _described(level, said["warn`, `abort"][0]) for name in LEVELS},
            "enabled": _described(SWITCH, said["enabled"][0]),
        }
        for level in (COUNT, AMOUNT)
    )
    weight = {"type": "number", "minimum": -HEAVIEST, "maximum": HEAVIEST}
    classes = {
        name: {"description": _meaning(name), "default": built_in, **weight}
        for name, built_in in WEIGHTS.items()
    }
    weights = _described(_table(classes), said["weights"][0])
    off = {"properties": {"enabled": {"const": False}}, "required": ["enabled"]}
    needed = {"anyOf": [*({"required": [name]} for name in LEVELS), off]}
    on_or_off = [SWITCH, {"const": 0}]
    return {
        "rule": {"anyOf": [_table(rule), *on_or_off]},
        "score_rule": {"anyOf": [_table(by_score), *on_or_off]},
        "stagnation": {"anyOf": [_table({**by_score, "weights": weights}), *on_or_off]},
        "rule_without_thresholds": {"anyOf": [_table(rule, **needed), {"enum": [False, 0]}]},
    }


def _meaning(name: str) -> str:
    of, ending, _ = name.partition("_failed")
    return STEP_CLASSES[of].meaning + (", where the call failed" if ending else "")


def _tool() -> dict[str, Schema]:
    special: Mapping[str, Schema] = {
        "ignore_arguments": {"anyOf": [SWITCH, NAMES]},
        "error_patterns": PATTERNS,
        "rules": _ref("rules_of_tool"),
    }
    said = dict(rows("Tools"))
    return {
        name: _described(special.get(name, SWITCH), said[name][1])
        for name in ToolOptions.__struct_fields__
    }


def _agent() -> dict[str, Schema]:
    parts = {"limits": _ref("limits"), "rules": _ref("rules_of_agent"), "tools": _named("tool")}
    said = dict(rows("Agents"))
    return {name: _described(part, said[name][1]) for name, part in parts.items()}


def _price() -> Schema:
    parts = {name: row[0] for name, row in rows("Usage") if name.endswith("_usd")}
    needed = [name for name, text in parts.items() if text.endswith("; needed")]
    return _table({name: _described(AMOUNT, text) for name, text in parts.items()}, required=needed)


def _usage() -> dict[str, Schema]:
    parts = {
        "input_includes_cache": SWITCH,
        "price": _ref("price"),
        "prices": _named("price"),
    }
    said = dict(rows("Usage"))
    return {name: _described(part, said[name][1]) for name, part in parts.items()}


def _masking() -> dict[str, Schema]:
    key = {"type": "string", "pattern": f"^{KEY_NAME}$"}
    parts: Mapping[str, Schema] = {
        "enabled": {**SWITCH, "default": True},
        "keys": {"type": "array", "items": key},
        "patterns": PATTERNS,
    }
    said = dict(rows("Masking"))
    return {name: _described(part, said[name][1]) for name, part in parts.items()}


def rows(heading: str) -> list[tuple[str, list[str]]]:
    """Return the rows of the page's tables under a heading: the first cell's name, and the rest."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    part = re.split(r"\n#{2,3} ", part)[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return [(cells[0].strip("`"), [_plain(cell) for cell in cells[1:]]) for cells in lines]


def _plain(cell: str) -> str:
    """Return what a cell says, without links and emphasis."""
    linked = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", cell)
    return linked.replace("**", "").replace("`", "").strip()


if __name__ == "__main__":
    sys.exit(main())
