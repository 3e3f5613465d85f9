"""Runs as words, and what is found in them: for tables of one fact a row.

A run is a word of steps. `a` is a call of tool `a` whose result is unknown, `a:1` one that answers
1, `a!e` one that fails with `e`; `a(x)` has the arguments `x`, `a(?)` unknown ones; `x/a` is called
by agent `x`, `y^x/a` by agent `y` that `x` called, `+a` was approved by a person. `*` is a model
turn, `*?` one that asks for a tool, `$` one that finishes the run, `.` a custom step, `@` a
sub-agent. `*#30,5` read 30 tokens and wrote 5, `*=0.25` cost a quarter of a dollar. `5s` lets five
seconds pass. `<a` only starts a step, `>a` only ends one, and in a word that begins with `-` nobody
records anything. A word of letters has no spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from otel_loopguard.canonical import UNKNOWN
from otel_loopguard.decisions import Violation
from otel_loopguard.guard import LoopGuard
from otel_loopguard.policy import Policy
from otel_loopguard.steps import Step, StepKind, ToolCall

TOKEN = re.compile(
    r"(?P<part>[<>]?)(?P<approved>\+?)((?P<agent>\w+)(\^(?P<above>\w+))?/)?"
    r"(?P<name>\w+|[*$.@])(?P<asks>\??)(\((?P<arguments>[^)]*)\))?"
    r"(#(?P<read>\d+),(?P<written>\d+))?(=(?P<cost>[\d.]+))?"
    r"(:(?P<result>\S+)|!(?P<error>\S+))?"
)
KINDS: Mapping[str, StepKind] = {"*": "llm", "$": "llm", ".": "custom", "@": "agent"}

Found = list[tuple[int, str, str, str, float]]
"""Step, rule, action, phase and count of each violation."""

limit = Policy.none().with_limits


def found_in(policy: Policy, word: str) -> Found:
    return [(v.step, v.rule, v.action, v.phase, v.count) for v in violations(policy, word)]


def violations(policy: Policy, word: str) -> Iterator[Violation]:
    now_s = 0.0
    guard = LoopGuard(policy, clock=lambda: now_s)
    tokens = word.removeprefix("- ").split()
    for token in list(word) if word.isalpha() else tokens:
        if seconds := re.fullmatch(r"(\d+)s", token):
            now_s += int(seconds[1])
            continue
        read = TOKEN.fullmatch(token)
        assert read, token
        step = step_of(read)
        if read["part"] != ">":
            yield from guard.check(step, commit=True).violations
        if read["part"] != "<" and not word.startswith("- "):
            yield from guard.record(step).violations


def step_of(read: re.Match[str]) -> Step:
    asked = (ToolCall(name="a"),) if read["asks"] else UNKNOWN
    return Step(
        kind=KINDS.get(read["name"], "tool"),
        name=read["name"],
        arguments=UNKNOWN if read["arguments"] == "?" else {"of": read["arguments"]},
        result=UNKNOWN if read["result"] is None else read["result"],
        error=read["error"],
        agent=read["agent"] or "",
        agent_parent_id=read["above"],
        approved=bool(read["approved"]),
        input_tokens=None if read["read"] is None else int(read["read"]),
        output_tokens=None if read["written"] is None else int(read["written"]),
        cost_usd=None if read["cost"] is None else float(read["cost"]),
        output="done" if read["name"] == "$" else UNKNOWN,
        tool_calls=() if read["name"] == "$" else asked,
        finish_reasons=("stop",) if read["name"] == "$" else (),
    )


def found(name: str, *entries: tuple[int, str, str, float]) -> Found:
    return [(step, name, action, phase, count) for step, action, phase, count in entries]


def stop(name: str, step: int, count: float, phase: str = "pre") -> Found:
    return found(name, (step, "abort", phase, count))


def warn(name: str, step: int, count: float, phase: str = "pre") -> Found:
    return found(name, (step, "warn", phase, count))
