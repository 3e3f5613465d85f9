"""The whole stack: collector, Prometheus, Alertmanager and a receiver of pages, on loopback."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from scripts.stack import rules
from scripts.stack.alertmanager import Alertmanager, alertmanager
from scripts.stack.gateway import Gateway, gateway
from scripts.stack.pages import Pager
from scripts.stack.posts import taking_posts
from scripts.stack.programs import Program
from scripts.stack.prometheus import Prometheus, prometheus


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """All that runs, but for the agents."""

    folder: Path
    gateway: Gateway
    prometheus: Prometheus
    alertmanager: Alertmanager
    pager: Pager

    def programs(self) -> list[Program]:
        """The processes."""
        return [self.gateway.program, self.prometheus.program, self.alertmanager.program]

    def fault(self) -> str | None:
        """Why it is of no use to wait for anything: a program has ended."""
        faults = (program.fault() for program in self.programs())
        return next((fault for fault in faults if fault is not None), None)

    def logs(self) -> str:
        """The end of each log in the folder, for whoever has to find out what went wrong."""
        texts = (
            (path.name, path.read_text(errors="replace").splitlines()[-20:])
            for path in sorted(self.folder.glob("*.log"))
        )
        return "\n".join(line for name, lines in texts for line in (f"== {name}", *lines))


@contextmanager
def running_stack(folder: Path, *, hurry: bool) -> Generator[Stack]:
    """Run the stack until the block is left; data, configurations and logs go into the folder.

    `hurry` says whether a minute of the alert rules is to last a second.
    """
    files = rules.hurried(folder / "rules") if hurry else rules.shipped()
    pages = Pager()
    with (
        taking_posts(pages.told) as webhook,
        alertmanager(folder, webhook=webhook, hurry=hurry) as told,
        prometheus(folder, rules=files, alertmanager=told.address) as metrics,
        gateway(folder, prometheus=metrics.url) as collector,
    ):
        yield Stack(
            folder=folder,
            gateway=collector,
            prometheus=metrics,
            alertmanager=told,
            pager=pages,
        )
