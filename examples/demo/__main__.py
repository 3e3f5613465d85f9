"""Two real agents that will not stop, without the guard and with it.

Everything happens on loopback: a scripted model server, an OTLP receiver, the agents of two real
frameworks with their real instrumentation, and OpenTelemetry's own exporter between them. What is
printed was read from the receiver. Exit code 1 if anything is not as claimed.
"""

from __future__ import annotations

import os
import sys

from arrivals import arrivals_of
from claims import Claim, claims_of
from frameworks import FRAMEWORKS
from report import bill, metrics_table, trace_tree, verdicts
from rich.console import Console
from scenes import Scene, play
from telemetry import ENVIRONMENT

from otel_loopguard.testing.otlp_receiver import otlp_receiver

FILE_WIDTH = 120  # columns, where the output is no terminal


def main() -> int:
    os.environ.update(ENVIRONMENT)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    scenes: list[Scene] = []
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
                    console.print(metrics_table(arrived.metrics), "")
    console.rule("[bold]The bill")
    console.print(bill(scenes), "")
    console.rule("[bold]Claimed and checked")
    for service, of_service in claims.items():
        console.print(f"[bold]{service}[/]", *verdicts(of_service), sep="\n")
    failed = sum(not claim.holds for of_service in claims.values() for claim in of_service)
    if failed:
        console.print(f"\n[bold red]{failed} of the claims above do not hold.[/]")
        return 1
    console.print("\n[bold green]Everything is as claimed.[/]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
