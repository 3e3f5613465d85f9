"""The process that trips everything: acted agents under a real guard, round after round.

    opentelemetry-instrument python -m scripts.stack.doubles FOLDER [--part crowd]

- `rounds` plays scenes for ever;
- `blind` is a service whose spans show nothing;
- `crowd` has more agents and tools than are told apart, and then stays as it is;
- `hoard` has more runs and spans than a guard remembers, and then stays as it is;
- `slow` has a guard that takes long;
- `lapse` loses its guard, and goes on without.

Each ends at SIGTERM, or after the seconds that `--seconds` says.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry import context, metrics

from otel_loopguard import install, uninstall
from otel_loopguard.dialects import BUILT_IN, Dialect
from otel_loopguard.spans import SpanRecord
from otel_loopguard.steps import Step
from scripts.stack import scenes
from scripts.stack.acting import chat, run, tool

GOOD = 'mode = "observe"\nscope = "conversation"\n\n[limits]\nmax_steps = 40\nmax_cost_usd = 60\n'
BAD = "max_stepps = 1\n"
ROUND_S = 1.0
CHANGES = 2
"""Rounds between two changes of the policy file, which is read a second or two after one."""
SLOW_S = 0.0015
REPORTED_S = 3
"""Long enough to be seen with a guard once."""

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
    parser.add_argument("--part", choices=sorted(PARTS), default="rounds")
    parser.add_argument("--seconds", type=float, default=86_400)
    options = parser.parse_args()
    ends = time.monotonic() + options.seconds
    policy = Path(options.folder, f"{options.part}.toml")
    policy.write_text(GOOD)
    odd = Dialect(name="odd", read=read_oddly)
    install(policy, dialects=(odd, *BUILT_IN))
    PARTS[options.part](policy, ends)


def crowd(_: Path, ends: float) -> None:
    """Many names, in a process of its own: there no name of another agent is lost for them."""
    scenes.many_names()
    time.sleep(max(ends - time.monotonic(), 0))


def hoard(_: Path, ends: float) -> None:
    """More of everything than a guard remembers."""
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


def blind(_: Path, ends: float) -> None:
    """A service of whose steps nothing is shown."""
    while time.monotonic() < ends:
        scenes.blind("hidden")
        time.sleep(ROUND_S)


def slow(_: Path, ends: float) -> None:
    """A service whose guard takes long: hundreds of spans a second, for few of them are timed."""
    while time.monotonic() < ends:
        scenes.slow()


def lapse(_: Path, ends: float) -> None:
    """A process that had a guard: it still reports, and no guard of it does."""
    scenes.healthy("formerly-guarded")
    time.sleep(REPORTED_S)
    uninstall()
    requests = metrics.get_meter("scripts.stack").create_counter("app.requests")
    while time.monotonic() < ends:
        requests.add(1)
        time.sleep(ROUND_S)


PARTS: dict[str, Callable[[Path, float], None]] = {
    "blind": blind,
    "crowd": crowd,
    "hoard": hoard,
    "lapse": lapse,
    "rounds": rounds,
    "slow": slow,
}


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
