"""Writes what the registry of telemetry becomes: two modules, and the tables of docs/operations.md.

    python -m scripts.telemetry_names

`make telemetry-names` runs it. The source is `otel_loopguard/registry/*.yaml`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.telemetry_modules import metrics_module, names_module
from scripts.telemetry_registry import HOME, ROOT, read
from scripts.telemetry_tables import page_with_tables

PAGE = ROOT / "docs" / "operations.md"


def main() -> int:
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


def written() -> Mapping[Path, str]:
    """Return the text of each file that is made of the registry."""
    registry = read()
    return {
        HOME / "names.py": names_module(registry),
        HOME / "metrics.py": metrics_module(registry),
        PAGE: page_with_tables(PAGE.read_text(encoding="utf-8"), registry),
    }


if __name__ == "__main__":
    sys.exit(main())
