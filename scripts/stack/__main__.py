"""Runs the whole stack on loopback, with agents that loop, and tells line by line what happens.

    python -m scripts.stack                      until Ctrl-C
    python -m scripts.stack --scenario everything

Collector, Prometheus and Alertmanager are real, and so are the agents; the model is a scripted one.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from scripts.collector_binary import CollectorBuildError
from scripts.debian_packages import MissingProgramsError
from scripts.stack.scenarios import SCENARIOS, Story
from scripts.stack.waiting import TooLateError
from scripts.stack.watching import Watch
from scripts.stack.whole import Stack, running_stack

LOOK_S = 0.5


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="looping")
    parser.add_argument(
        "--trip-everything",
        action="store_const",
        const="everything",
        dest="scenario",
        help="the same as --scenario everything",
    )
    parser.add_argument("--as-shipped", action="store_true", help="do not hurry the alert rules")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end by itself then")
    options = parser.parse_args(arguments)
    # Whoever ends this process ends what it has started, a shell that has put it in the background
    # too: such a shell has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, end)
    folder = Path(mkdtemp(prefix="loopguard-stack-"))
    try:
        run(folder, options.scenario, options.seconds, hurry=not options.as_shipped)
    except KeyboardInterrupt:
        print("\nall is stopped")
    except SystemExit:
        shutil.rmtree(folder)
        raise
    except (CollectorBuildError, MissingProgramsError, TooLateError) as error:
        print(f"{error}\nlogs are kept in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def end(number: int, _: object) -> None:
    """Leaves all blocks, as Ctrl-C does."""
    sys.exit(128 + number)


def run(folder: Path, scenario: str, seconds: float, *, hurry: bool) -> None:
    print("starting the collector (built once, which takes minutes), Prometheus, Alertmanager ...")
    with running_stack(folder, hurry=hurry) as stack, SCENARIOS[scenario](stack) as story:
        introduce(stack, story, hurry=hurry)
        watch = Watch(stack)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            watch.look()
            story.go_on()
            fault = stack.fault()
            if fault is not None:
                raise TooLateError(fault)
            time.sleep(LOOK_S)


def introduce(stack: Stack, story: Story, *, hurry: bool) -> None:
    print(f"""
Prometheus    {stack.prometheus.url}/alerts
Alertmanager  {stack.alertmanager.url}
collector     {stack.gateway.otlp} (OTLP over HTTP), its own metrics http://{stack.gateway.telemetry}/metrics
traces        {stack.gateway.exported}
logs          {stack.folder}
""")
    for line in story.told:
        print(f"- {line}")
    if hurry:
        print("- a minute of the alert rules lasts a second; with --as-shipped it does not")
    print("Ctrl-C ends it all.\n", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
