"""Metrics for Prometheus with no line of code, by OpenTelemetry's own way to set everything up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests._openmetrics import parsed, without_scope

ROOT = Path(__file__).parents[2]
APPLICATION = Path(__file__).with_name("_application.py")
INSTRUMENT = Path(sys.executable).parent / "opentelemetry-instrument"
# The agent runs as it is; then its process asks itself what Prometheus would ask.
SCRAPED = """
import os, runpy, sys, urllib.request
sys.argv = [{application!r}, "distro", "none", ""]
runpy.run_path(sys.argv[0], run_name="__main__")
address = "http://127.0.0.1:" + os.environ["OTEL_EXPORTER_PROMETHEUS_PORT"] + "/metrics"
asked = urllib.request.Request(address, headers={{"Accept": "application/openmetrics-text"}})
sys.stdout.write(urllib.request.urlopen(asked, timeout=30).read().decode())
"""


def test_one_variable_serves_metrics_with_exemplars() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {
        "OTEL_METRICS_EXPORTER": "loopguard_prometheus",
        "OTEL_EXPORTER_PROMETHEUS_PORT": str(port),
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_SERVICE_NAME": "scouts",
    }
    done = subprocess.run(
        [INSTRUMENT, sys.executable, "-c", SCRAPED.format(application=str(APPLICATION))],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )
    assert done.returncode == 0, done.stderr

    families = parsed(without_scope(done.stdout))
    [target] = families["target"].samples
    assert target.labels["service_name"] == "scouts"
    tripped = [
        sample.exemplar.labels["trace_id"]
        for sample in families["loopguard_violations"].samples
        if sample.exemplar is not None and sample.labels["loopguard_action"] == "abort"
    ]
    assert {len(each) for each in tripped} == {32}
