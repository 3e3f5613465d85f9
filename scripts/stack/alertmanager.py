"""A real Alertmanager on loopback that pages one receiver."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from scripts.debian_packages import programs
from scripts.stack.programs import Program, free_ports, running


class Alertmanager:
    """An Alertmanager that runs."""

    def __init__(self, address: str, program: Program) -> None:
        self.address = address
        self.url = f"http://{address}"
        self.program = program


@contextmanager
def alertmanager(folder: Path, *, pages: str) -> Generator[Alertmanager]:
    """Run Alertmanager until the block is left; `pages` is the address that it tells."""
    [port] = free_ports(1)
    configuration = {
        "route": {
            "receiver": "pager",
            # Each alert is told of by itself, at once: who watches wants to see them all.
            "group_by": ["..."],
            "group_wait": "0s",
            "group_interval": "1s",
            "repeat_interval": "1h",
        },
        "receivers": [
            {"name": "pager", "webhook_configs": [{"url": pages, "send_resolved": True}]}
        ],
    }
    file = folder / "alertmanager.yml"
    file.write_text(json.dumps(configuration, indent=1))  # JSON is YAML
    address = f"127.0.0.1:{port}"
    command: list[str | Path] = [
        programs("alertmanager")["alertmanager"],
        f"--config.file={file}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    ready = f"http://{address}/-/ready"
    with running("alertmanager", command, folder, ready=ready) as program:
        yield Alertmanager(address, program)
