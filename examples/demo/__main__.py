"""Two real agents that will not stop, without the guard and with it.

Everything happens on loopback: a scripted model server, an OTLP receiver, the agents of two real
frameworks with their real instrumentation, and OpenTelemetry's own exporter between them. What is
printed was read from the receiver. Exit code 1 if anything is not as claimed.
"""

from __future__ import annotations

import os
import sys

from arrivals import Arrivals, arrivals_of
from claims import Claim, claims_of
from frameworks import FRAMEWORKS
from report import bill, introduction, metrics_table, summaries, verdicts
from rich.console import Console
from scenes import Scene, play
from telemetry import ENVIRONMENT
from tree import trace_tree

from otel_loopguard.testing.otlp_receiver import otlp_receiver

FILE_WIDTH = 120  # columns, where the output is no terminal and COLUMNS does not say


def main() -> int:
    os.environ.update(ENVIRONMENT)
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH
    console.print(introduction([framework.name for framework in FRAMEWORKS]))
    scenes: list[Scene] = []
    guarded_arrivals: dict[str, Arrivals] = {}
    claims: dict[str, list[Claim]] = {}
    with otlp_receiver() as receiver:
        for framework in FRAMEWORKS:
            for guarded in (False, True):
                scene = play(framework, receiver, guarded=guarded)
                arrived = arrivals_of(receiver, scene.service)
                scenes.append(scene)
                claims[scene.service] = list(claims_of(scene, arrived))
                console.rule(f"[bold]{scene.service}")
                for run in scene.runs:
                    console.print(trace_tree(arrived.trace_of(run.agent)), "")
                if guarded:
                    guarded_arrivals[framework.name] = arrived
    console.rule("[bold]The guard's metrics")
    console.print(metrics_table(guarded_arrivals))
    console.rule("[bold]What each run cost, and what ended it")
    console.print(bill(scenes))
    console.print(*verdicts(claims), "", *summaries(scenes), sep="\n", soft_wrap=True)
    return 0 if all(claim.holds for each in claims.values() for claim in each) else 1


if __name__ == "__main__":
    sys.exit(main())
