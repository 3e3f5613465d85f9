"""Runs every benchmark here, each in a process of its own: `python benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    for benchmark in sorted(HERE.glob("bench_*.py")):
        print(f"\n== {benchmark.stem}", flush=True)
        subprocess.run([sys.executable, benchmark], check=True)  # noqa: S603 -- our own files
