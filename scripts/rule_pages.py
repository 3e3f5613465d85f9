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
from scripts.measure_rules import TARGET, Measured
from scripts.rule_page import WRITTEN, page_of, parts_of
from scripts.rule_page_tables import level, stopped_share, table, thresholds_of

PAGES = TARGET.parent

_INDEX = """\
One page for each rule: what it sees and what not, an example that runs as a test, its options, and
how often it was wrong on recorded runs. [Policy](../policy.md) says how they are set,
[Results](../results.md) when two results are the same. A false abort is a run that succeeded and
would have been stopped."""

_RECORDINGS = """\
Measured on {on} by `scripts/measure_rules.py`, each rule by itself, on public recordings of agents.
Whether a run succeeded is what their authors say; the loops were labelled by reading the runs,
without any rule at hand. A run that failed is not thereby a loop. Rules that need model turns or
tokens are measured on the runs that have them."""

_AGAIN = """\
The recordings are no part of the project. Write your own runs as [steps files](../replay.md) to see
what holds for them. [`backtest`](../backtest.md) says of a whole policy how many it stops, and by
which rule first; the script writes what these pages show, in some minutes:

```console
$ otel-loopguard backtest recordings/ --labels labels.json
$ python -m scripts.measure_rules recordings/ --labels labels.json && make rule-pages
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
        (name, f"{found.runs['steps']:,}", f"{found.succeeded['steps']:,}", found.loops)
        for name, found in measured.recordings.items()
    ]
    blocks = [
        WRITTEN,
        "# Rules",
        _INDEX,
        "## Rules with thresholds",
        table(("rule", "what it finds", "warn", "abort", "false aborts"), rules),
        "## Limits",
        table(("rule", "what it finds", "option", "false aborts"), limits),
        f"## Recordings\n\n{_RECORDINGS.format(on=measured.on)}",
        table(("source", "runs", "that succeeded", "labelled as loops"), sources),
        _AGAIN,
        "```{toctree}\n:hidden:\n:glob:\n\n*\n```",
    ]
    return "\n\n".join(blocks) + "\n"


def _link(detector: type[Detector]) -> str:
    return f"[`{detector.rule}`]({detector.rule}.md)"


if __name__ == "__main__":
    sys.exit(main())
