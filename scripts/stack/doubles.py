"""The process that trips everything: acted agents under a real guard, round after round.

    opentelemetry-instrument python -m scripts.stack.doubles FOLDER [--crowd]

One process plays scenes for ever; another one, the crowd, has more agents, runs and spans than a
guard remembers, and then stays as it is. Both end at SIGTERM, or after the seconds that `--seconds`
says.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry import context

from otel_loopguard import install
from otel_loopguard.dialects import BUILT_IN, Dialect
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from scripts.stack import scenes
from scripts.stack.acting import chat, run, tool

GOOD = 'mode = "observe"\nscope = "conversation"\n\n[limits]\nmax_steps = 40\n'
BAD = "max_stepps = 1\n"
ROUND_S = 1.0
CHANGES = 4
"""Rounds between two changes of the policy file, which is read a second or two after one."""
SLOW_S = 0.003

SCENES: tuple[tuple[Callable[[str], None], str], ...] = (
    (scenes.healthy, "support-triage"),
    (scenes.healthy, scenes.LONG_NAME),
    (scenes.repeating, scenes.LONG_NAME),
    (scenes.repeating, "support-triage"),
    (scenes.going_round, "coder"),
    (scenes.failing, "coder"),
    (scenes.truncated, "writer"),
    (scenes.endless, "crawler"),
    (scenes.blind, "blind"),
    (scenes.without_tool_spans, "untold"),
    (scenes.dear, "spender"),
    (scenes.odd, "odd"),
)


def read_oddly(record: SpanRecord) -> Step | None:
    """Fails on one kind of span, and takes long over another."""
    if record.name == "odd":
        raise LookupError("this dialect does not know what to make of an odd span")
    if record.name == "slow":
        time.sleep(SLOW_S)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--crowd", action="store_true")
    parser.add_argument("--seconds", type=float, default=86_400)
    options = parser.parse_args()
    ends = time.monotonic() + options.seconds
    policy = Path(options.folder, "crowd.toml" if options.crowd else "doubles.toml")
    policy.write_text(GOOD)
    odd = Dialect(name="odd", read=read_oddly)
    install(policy, dialects=(odd, *BUILT_IN))
    (crowd if options.crowd else rounds)(policy, ends)


def crowd(_: Path, ends: float) -> None:
    """More of everything than a guard remembers."""
    scenes.many_names()
    scenes.full_stores()
    print("the stores are full", flush=True)
    time.sleep(max(ends - time.monotonic(), 0))


def rounds(policy: Path, ends: float) -> None:
    """All scenes, again and again, while one run goes on and the policy changes."""
    with run("marathon"):
        chat((10_000_000, 10_000), says="This will take long.")
        for number in itertools.count(1):
            if time.monotonic() > ends:
                return
            tool("wait", {"poll": 1})
            apart()
            if number % CHANGES == 0:
                policy.write_text(f"{BAD if number % (2 * CHANGES) else GOOD}# {number}\n")
            time.sleep(ROUND_S)


def apart() -> None:
    """Play all scenes once, where no run is current."""
    token = context.attach(context.Context())
    try:
        for scene, agent in SCENES:
            scene(agent)
    finally:
        context.detach(token)


if __name__ == "__main__":
    main()
