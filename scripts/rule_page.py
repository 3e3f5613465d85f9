"""The page about one rule, from its detector's docstring and facts, its example, and figures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

from otel_loopguard.detectors import DEFAULT_RULES, DETECTORS, RULES, Detector
from otel_loopguard.engine.rule_plans import TIMED
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.options.rules import RULES as SETTABLE
from otel_loopguard.options.rules import STAGNATION
from scripts.measure_rules import TARGET, UNSEEN, Measured
from scripts.rule_page_policy import policy_text
from scripts.rule_page_tables import (
    classes_table,
    level,
    measured_table,
    options_table,
    table,
    thresholds_of,
)

EXAMPLES = TARGET.parents[2] / "examples" / "rules"
SECTIONS = ("What it sees", "Why it matters", "What it does not see")
KINDS = {
    "llm": "model calls",
    "tool": "tool calls",
    "agent": "sub-agents",
    "custom": "custom steps",
}
COUNTED = {
    "totals": "for what the policy's [scope](../policy.md#scope) says: the whole run by default",
    "run": "for the whole run, sub-agents included",
    "agent": "for each agent of a run by itself",
}
MOMENTS = {
    "start": "in `check`",
    "call": "in `check`, or in `record` where the arguments are known only then",
    "result": "in `record`",
}
WRITTEN = "<!-- Written by `make rule-pages`; scripts/rule_pages.py says from what. -->"


_CLASSES = """\
A weight is the natural logarithm of how much more often a class comes up in loops than in work.
`recordings`: 17 loops that were read step by step, against 886 successful runs; `counted`: failed
against successful runs among 8,237; `design`: set by reasoning. For `weights`, the class of a call
that failed ends in `_failed`.

The sum is a CUSUM, a cumulative sum that stays at 0 where it would fall below: good work long ago
does not outweigh a loop that begins now. For example, page `a` read twice in a row is `novel` and
`again`; then page `b` is `novel`, and page `a` once more is `returned_since`."""


def page_of(detector: type[Detector], measured: Measured) -> str:
    """Return the page of a rule."""
    summary, sections = parts_of(detector)
    sees, matters, hidden = (f"## {name}\n\n{sections[name]}" for name in SECTIONS)
    said, code = example_of(detector)
    blocks = [
        WRITTEN,
        f"# {detector.rule}",
        summary,
        table(("", ""), facts_of(detector)),
        sees,
        matters,
        f"## Example\n\n{said}\n\n```python\n{code}\n```",
        hidden,
        f"## Options\n\n{options_table(detector)}",
        f"```toml\n{policy_text(detector)}\n```",
        *remarks_on(detector),
        f"## Measured\n\n{_measured(detector, measured)}",
    ]
    if detector.rule == STAGNATION:
        blocks.append(f"## Classes\n\n{_CLASSES}\n\n{classes_table()}")
    return linked("\n\n".join(blocks), detector.rule) + "\n"


def parts_of(detector: type[Detector]) -> tuple[str, Mapping[str, str]]:
    """Return the first line of a detector's docstring, and its sections by heading."""
    text = inspect.getdoc(detector) or ""
    summary, _, rest = text.partition("\n\n")
    pieces = re.split(r"^(\S.*)\n", rest, flags=re.MULTILINE)[1:]
    bodies = (inspect.cleandoc(body) for body in pieces[1::2])
    return " ".join(summary.split()), dict(zip(pieces[::2], bodies, strict=True))


def example_of(detector: type[Detector]) -> tuple[str, str]:
    """Return what an example shows, and its code."""
    text = (EXAMPLES / f"{detector.rule}.py").read_text(encoding="utf-8")
    _, said, code = text.split('"""', 2)
    return said.strip(), code.strip()


def facts_of(detector: type[Detector]) -> Iterator[tuple[str, str]]:
    """Yield what is to be known of a rule before anything else."""
    yield "by default", default_of(detector)
    yield "reason", f"`{detector.reason}`"
    yield "judges", ", ".join(name for kind, name in KINDS.items() if kind in detector.judges)
    yield "counts", COUNTED[detector.reach]
    yield "speaks", spoken_when(detector)


def default_of(detector: type[Detector]) -> str:
    """Return what a rule does unless a policy says something else."""
    if detector.rule not in DEFAULT_RULES:
        return "off"
    thresholds = thresholds_of(detector.rule)
    levels = {"warns": thresholds.warn, "aborts": thresholds.abort}
    return "on: " + ", ".join(f"{does} at {level(n)}" for does, n in levels.items() if n)


def spoken_when(detector: type[Detector]) -> str:
    said: object = vars(detector)["moment"]
    moment = said if isinstance(said, str) else "call"  # a property: with the arguments, or without
    if detector.rule in TIMED:
        return "in `check`, in `record`, and in `tick` while nothing happens"
    early = f"{MOMENTS['start']} where that is enough to know, else "
    return (early if detector.foresees else "") + MOMENTS[moment]


def remarks_on(detector: type[Detector]) -> Iterator[str]:
    """Yield what else is to be known of the options."""
    rule = detector.rule
    if rule in LIMIT_OF_RULE:
        yield "[Policy](../policy.md#limits) says what a limit takes; `0` switches it off."
    if "tool" in detector.judges:
        judged = "`exempt = true`" if _holds_for_polls(detector) else "`poll` or `exempt` set"
        asked = "" if _holds_for_polls(detector) else ", and those that a person approved,"
        yield f"Calls of a [tool](../policy.md#tools) with {judged}{asked} are left\nout."
    if rule in RULES and rule not in DEFAULT_RULES:
        yield "It is off until it gets `warn`, `abort` or both: `enabled = true` alone is an error."
    if rule in RULES:
        missing = [f"for one {whose}" for whose in ("tool", "agent") if rule not in SETTABLE[whose]]
        if missing:
            yield f"It cannot be set {' or '.join(missing)}."


def _holds_for_polls(detector: type[Detector]) -> bool:
    return detector.rule not in RULES and detector.reach != "agent"


def _measured(detector: type[Detector], measured: Measured) -> str:
    if detector.rule in UNSEEN:
        why = f"Not on the [recordings](index.md#recordings): {UNSEEN[detector.rule]}."
        return f"{why}\nThere are [two sets](index.md#two-sets-of-recordings) of these."
    told = (
        f"On the [recordings](index.md#recordings), {measured.on}: how many runs it would have\n"
        "stopped by itself. Behind a number of successful runs is its share, with the 95 %\n"
        "Wilson score interval. Figures of 21,365 or 1,732 runs above are from the\n"
        "[larger set](index.md#two-sets-of-recordings) on which thresholds were chosen."
    )
    return f"{told}\n\n{measured_table(detector, measured)}"


def linked(text: str, own: str) -> str:
    """Return text in which the names of other rules lead to their pages, but for its code."""
    others = {detector.rule for detector in DETECTORS} - {own}
    code = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
    parts = code.split(text)
    parts[::2] = [
        re.sub(
            r"(?<!\[)`(\w+)`",
            lambda found: f"[`{found[1]}`]({found[1]}.md)" if found[1] in others else found[0],
            part,
        )
        for part in parts[::2]
    ]
    return "".join(parts)
