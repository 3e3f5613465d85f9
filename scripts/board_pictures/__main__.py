"""Draws the boards: `python -m scripts.board_pictures`, or `make dashboards-picture`.

Headless Chromium and Grafana's own components, over a real Prometheus that watches real guards.
It is not Grafana: panel plugins and the loader of boards are not among the components that Grafana
publishes, so a picture shows units, colours and what is cut, and not that an import works.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from dashboards.checks.documents import NOT_RUN, Document, boards, panels
from dashboards.checks.names import COLLECTOR
from dashboards.checks.watched import watched
from scripts.debian_packages import programs
from scripts.environment import ROOT
from scripts.javascript_packages import found, installed

HERE = Path(__file__).parent
PICTURES = ROOT / "docs" / "pictures"
THEMES = ("light", "dark")
WIDTHS = (1440, 1024)
COLOURS = "256"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
        """Say nothing."""


def build(home: Path) -> Path:
    """The page as files."""
    modules = installed(HERE)
    shutil.copytree(HERE, home, dirs_exist_ok=True)
    (home / "node_modules").symlink_to(modules)
    vite = str(modules / "vite" / "bin" / "vite.js")
    subprocess.run([found("node"), vite, "build"], cwd=home, check=True)
    return home / "dist"


def without_collector(board: Document) -> dict[str, Any]:
    """A board without what only a collector counts, which would be empty."""
    kept = [panel for panel in panels(board) if not any(name in str(panel) for name in COLLECTOR)]
    if kept and kept[-1]["type"] == "row":
        kept.pop()
    return {**board, "panels": kept}


@contextmanager
def served(directory: Path) -> Generator[str]:
    handler = partial(Quiet, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def draw(page: str, home: Path, prometheus: str, seconds: int, *, collector: bool) -> int:
    wanted: list[str] = []
    PICTURES.mkdir(exist_ok=True)
    shown = {name: board for name, board in boards().items() if NOT_RUN not in board["title"]}
    names = sorted(shown)
    for name, board in shown.items():
        given = dict(board) if collector else without_collector(board)
        (home / "dist" / f"{name}.json").write_text(json.dumps(given), encoding="utf-8")
    for name, theme, width in product(names, THEMES, WIDTHS):
        asked = {"board": name, "theme": theme, "width": width, "prometheus": prometheus}
        file = PICTURES / f"{name}-{theme}-{width}.png"
        address = f"{page}/?{urlencode({**asked, 'seconds': seconds})}"
        wanted += [address, str(width), str(file)]
    chromium = programs("chromium")["chromium"]
    command = [found("node"), "draw.mjs", str(chromium), *wanted]
    done = subprocess.run(command, cwd=home, check=False)
    quantise = [str(programs("pngquant")["pngquant"]), "--ext=.png", "--force", "--strip", COLOURS]
    subprocess.run([*quantise, *wanted[2::3]], check=True)
    return done.returncode


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prometheus", help="with data and CORS; one is started if not given")
    parser.add_argument("--collector", action="store_true", help="one has counted violations in it")
    parser.add_argument("--seconds", type=int, default=900, help="what the boards show")
    options = parser.parse_args(arguments)
    given = options.prometheus
    with TemporaryDirectory(prefix="loopguard-picture-") as made:
        home = Path(made)
        page = build(home)
        with nullcontext(given) if given else watched(scrape_s=5) as url, served(page) as address:
            if not given:
                print(f"watching agents for {options.seconds} seconds", flush=True)
                time.sleep(options.seconds)
            return draw(address, home, url, options.seconds, collector=options.collector)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
