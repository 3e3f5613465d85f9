"""What the boards ask for counts a first trip, and counts nothing twice after a gap."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dashboards.generator.promql import grew
from scripts.debian_packages import programs

SERIES = "x"
TEST = """\
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: x
        values: '{values}'
    promql_expr_test:
      - expr: '{expression}'
        eval_time: {at}m
        exp_samples:
          - labels: '{{}}'
            value: {expected}
"""


@pytest.mark.parametrize(
    ("values", "at", "expected"),
    [
        pytest.param("_x60 1x10", 64, 1, id="born-at-one"),
        pytest.param("0x60 1x10", 64, 1, id="there-at-zero"),
        pytest.param("7x90", 80, 0, id="long-there"),
        pytest.param("7x60 _x10 7x30", 74, 0, id="back-after-a-gap"),
    ],
)
def test_growth(tmp_path: Path, values: str, at: int, expected: int) -> None:
    expression = grew(SERIES, "5m")
    file = tmp_path / "grew.yaml"
    file.write_text(TEST.format(values=values, expression=expression, at=at, expected=expected))
    promtool = str(programs("promtool")["promtool"])
    done = subprocess.run(
        [promtool, "test", "rules", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_plain_increase_misses_the_first(tmp_path: Path) -> None:
    """Why it is not asked for: it says that nothing happened."""
    file = tmp_path / "increase.yaml"
    plain = TEST.format(values="_x60 1x10", expression="increase(x[5m])", at=64, expected=0)
    file.write_text(plain)
    promtool = str(programs("promtool")["promtool"])
    done = subprocess.run([promtool, "test", "rules", str(file)], timeout=60, check=False)
    assert done.returncode == 0
