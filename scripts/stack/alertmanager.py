"""A real Alertmanager on loopback, with the routes that are shipped, and receivers of its own."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from scripts.debian_packages import programs
from scripts.stack.programs import Program, free_ports, running
from scripts.stack.rules import sooner

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "dashboards" / "alerting" / "alertmanager.yaml"
RECEIVERS = ("pager", "chat")
"""Those of the shipped routes. There they have accounts somewhere, here both are one webhook."""


class Alertmanager:
    """An Alertmanager that runs."""

    def __init__(self, url: str, program: Program) -> None:
        self.url = url
        self.program = program

    @property
    def address(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")


@contextmanager
def alertmanager(folder: Path, *, webhook: str, hurry: bool) -> Generator[Alertmanager]:
    """Run Alertmanager until the block is left; `webhook` is the address that it tells."""
    [port] = free_ports(1)
    file = folder / "alertmanager.yml"
    routes = routing(SHIPPED.read_text(), webhook)
    file.write_text(sooner(routes) if hurry else routes)
    url = f"http://127.0.0.1:{port}"
    command: list[str | Path] = [
        programs("alertmanager")["alertmanager"],
        f"--config.file={file}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    with running("alertmanager", command, folder, ready=f"{url}/-/ready") as program:
        yield Alertmanager(url, program)


def routing(shipped: str, webhook: str) -> str:
    """The shipped routes and inhibitions, with receivers that tell a webhook.

    Raises:
        ValueError: what is shipped does not end with its receivers.

    """
    routes, found, _ = shipped.partition("\nreceivers:\n")
    if not found:
        raise ValueError(f"{SHIPPED}: expected a part `receivers:` at the end, found none")
    told = {"url": webhook, "send_resolved": True}
    receivers = [{"name": name, "webhook_configs": [told]} for name in RECEIVERS]
    return f"{routes}{found}  {json.dumps(receivers)}\n"  # JSON is YAML
