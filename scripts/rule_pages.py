"""Writes docs/rules: a page for each rule and limit, and their index. `make rule-pages` runs it.

    python -m scripts.rule_pages

A page is made of the docstring and the facts of the detector's class, of `examples/rules/<id>.py`
and of `docs/rules/measured.json`, which `python -m scripts.measure_rules` writes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from otel_loopguard.detectors import DETECTORS, RULES, Detector
from otel_loopguard.options.limits import LIMIT_OF_RULE
from scripts.measure_rules import TARGET, UNSEEN, Measured
from scripts.rule_page import WRITTEN, page_of, parts_of
from scripts.rule_page_tables import (
    largest_of,
    level,
    stopped_share,
    table,
    thresholds_of,
    together_table,
)

PAGES = TARGET.parent

_INDEX = """\
One page for each rule: what it sees and what not, an example that runs as a test, its options, and
how often it was wrong on recorded runs. [Policy](../policy.md) says how they are set,
[Results](../results.md) when two results are the same. A false abort is a run that succeeded and
would have been stopped. `check` is asked before a step happens and `record` is told what came of
it; the span processor calls both, when a span starts and when it ends."""

_TOGETHER = """\
All rules that are on by default together, on the [recordings](#recordings), with the 95 % Wilson
score interval:"""

_FEW = """\
Most of these runs are of one source, {largest}: short shell and SQL
puzzles, by models of 2023 that often repeat an error until their turns are up. Five loops are too
few to say how many would be missed. What holds for your agents, [`backtest`](../backtest.md) says
of recordings of your own."""

_SETS = """\
Thresholds were chosen on 21,365 runs of 16 public data sets, with a prototype: so that few of 1,732
successful runs are stopped (those with a tool call, without text games and one-line shell puzzles)
and many of 52 failed ones that were read step by step and found to go in circles. Figures of these
numbers of runs on a page are from there.

The tables of the pages, and the one above, are from those 8,237 of these runs that may be shared,
by the code as it is. They have InterCode's puzzles in them, which the 1,732 leave out, so a share
of all successful runs is mostly a share of InterCode.

Not all comes from recordings. These rules have no measured share, because the recordings do not
show what they look at: {unmeasured}.
Where a page has no figures for a threshold, reasoning set it; so it did some weights of
`stagnation`."""

_RECORDINGS = """\
Measured on {on} by `scripts/measure_rules.py`, each rule by itself, on public recordings of agents.
Whether a run succeeded is what their authors say; the loops were labelled by reading the runs,
without any rule at hand. A run that failed is not thereby a loop. Rules that need model turns or
tokens are measured on the runs that have them."""

SOURCES: Mapping[str, str] = {
    "allenai/super-benchmark": "ReAct-SUPER and SWE-agent, GPT-4o: running research code",
    "avaljotsingh/tau-bench": "tool calling and code agents: retail support",
    "gruckion/mini-swe-agent": "mini-swe-agent, Gemini 3 Pro: SWE-bench Verified",
    "microsoft/AgentRx": "tool calling: retail support; Magentic-One: general tasks",
    "mingyin1/Agents_Failure_Attribution": "CaptainAgent: general tasks, all failed",
    "noahshinn/reflexion": "ReAct, davinci-003: HotpotQA",
    "princeton-nlp/intercode": (
        "try again, ReAct, plan and solve; models of 2023: shell and SQL puzzles"
    ),
    "sierra-research/tau-bench": "tool calling, GPT-4o: airline support",
}
"""Who did what in the runs of a source."""

_AGAIN = """\
The recordings are no part of the project. Write your own runs as [steps files](../replay.md) to see
what holds for them: [`backtest`](../backtest.md) says of a whole policy how many it stops, and by
which rule first.

```console
$ otel-loopguard backtest recordings/ --labels labels.json
```"""


def main() -> int:
    for name, text in pages(read_measured()).items():
        (PAGES / name).write_text(text, encoding="utf-8")
    print(f"{PAGES}: {len(DETECTORS)} rules")
    return 0


def read_measured() -> Measured:
    """Return what `scripts/measure_rules.py` found."""
    return msgspec.json.decode(TARGET.read_bytes(), type=Measured)


def pages(measured: Measured) -> Mapping[str, str]:
    """Return the text of each page, by the name of its file."""
    texts = {f"{detector.rule}.md": page_of(detector, measured) for detector in DETECTORS}
    return {"index.md": index_of(measured), **texts}


def index_of(measured: Measured) -> str:
    """Return the index of all rules."""
    rules = [
        (_link(d), parts_of(d)[0], level(line.warn), level(line.abort), stopped_share(d, measured))
        for d in DETECTORS
        if d.rule in RULES
        for line in [thresholds_of(d.rule)]
    ]
    limits = [
        (_link(d), parts_of(d)[0], f"`{LIMIT_OF_RULE[d.rule]}`", stopped_share(d, measured))
        for d in DETECTORS
        if d.rule not in RULES
    ]
    sources = [
        (
            name,
            SOURCES.get(name, ""),
            f"{found.runs['steps']:,}",
            f"{found.succeeded['steps']:,}",
            found.loops,
        )
        for name, found in measured.recordings.items()
    ]
    blind = [f"`{d.rule}`" for d in DETECTORS if d.rule in RULES and d.rule in UNSEEN]
    unmeasured = f"{', '.join(blind[:-1])} and {blind[-1]}"
    blocks = [
        WRITTEN,
        "# Rules",
        _INDEX,
        f"## The default policy as a whole\n\n{_TOGETHER}",
        together_table(measured),
        _FEW.format(largest=largest_of(measured)),
        "## Rules with thresholds",
        table(("rule", "what it finds", "warn", "abort", "false aborts"), rules),
        "## Limits",
        table(("rule", "what it finds", "option", "false aborts"), limits),
        f"## Two sets of recordings\n\n{_SETS.format(unmeasured=unmeasured)}",
        f"## Recordings\n\n{_RECORDINGS.format(on=measured.on)}",
        table(
            ("source", "agents and tasks", "runs", "that succeeded", "labelled as loops"), sources
        ),
        _AGAIN,
        "```{toctree}\n:hidden:\n:glob:\n\n*\n```",
    ]
    return "\n\n".join(blocks) + "\n"


def _link(detector: type[Detector]) -> str:
    return f"[`{detector.rule}`]({detector.rule}.md)"


if __name__ == "__main__":
    sys.exit(main())
