"""Who hears of an alert, and who does not because of another, by the example for Alertmanager."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts.alert_rules import ALERTING, Alert, alerts, apart
from scripts.debian_packages import programs

EXAMPLE = ALERTING / "alertmanager.yaml"
RECEIVERS = {"critical": "pager", "warning": "chat", "info": "chat"}
EVERY = alerts()
READY_S = 20

AGENT = {"job": "support", "gen_ai_agent_name": "coder"}


@pytest.fixture(scope="session")
def amtool() -> Path:
    return programs("amtool", "alertmanager")["amtool"]


def ask(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 -- to itself
    with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 -- as above
        text = response.read()
    return json.loads(text) if text.startswith((b"{", b"[")) else text


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of an Alertmanager that goes by the example; it can send nothing to anybody."""
    home = tmp_path_factory.mktemp("alertmanager")
    config = Path(shutil.copy(EXAMPLE, home))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [
                programs("alertmanager")["alertmanager"],
                f"--config.file={config}",
                f"--storage.path={home / 'data'}",
                f"--web.listen-address={address}",
                "--cluster.listen-address=",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(f"http://{address}/-/ready", process, home / "log")
        yield f"http://{address}/api/v2/alerts"
    finally:
        process.terminate()
        process.wait(10)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        try:
            ask(url)
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return


def inhibited(
    alertmanager: str, sent: Sequence[Mapping[str, str]], expected: Sequence[Mapping[str, str]]
) -> Sequence[Mapping[str, str]]:
    """Those of the alerts that nobody hears of because of another, as soon as they are these."""
    ask(alertmanager, [{"labels": labels} for labels in sent])
    deadline = time.monotonic() + READY_S
    while True:
        there = [each for each in ask(alertmanager) if each["labels"] in sent]
        hidden = [each["labels"] for each in there if each["status"]["inhibitedBy"]]
        # What inhibits is known a moment after it was sent.
        if (len(there), hidden) == (len(sent), expected) or time.monotonic() > deadline:
            return hidden
        time.sleep(0.1)


def test_the_example_is_right(amtool: Path):
    done = subprocess.run(
        [amtool, "check-config", EXAMPLE], check=False, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", EVERY, ids=lambda each: f"{each.alert}-{apart(each, EVERY)}")
def test_each_alert_is_heard_by_whom_its_severity_says(amtool: Path, alert: Alert):
    receiver = RECEIVERS[alert.labels["severity"]]
    labels = [
        f"{name}={value}" for name, value in {"alertname": alert.alert, **alert.labels}.items()
    ]

    done = subprocess.run(
        [
            *(amtool, "config", "routes", "test", f"--config.file={EXAMPLE}"),
            *(f"--verify.receivers={receiver}", *labels),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stdout.strip()) == (0, receiver), done.stderr


def labelled(name: str, severity: str, topic: str, **labels: str) -> Mapping[str, str]:
    return {"alertname": name, "severity": severity, "topic": topic, **labels}


def test_where_an_agent_is_paged_for_its_warnings_are_not_sent_too(alertmanager: str):
    page = labelled("LoopguardRunawayContinues", "critical", "runs", window="5m", **AGENT)
    stuck = labelled("LoopguardRunStuck", "warning", "runs", **AGENT)
    blind = labelled("LoopguardBlind", "warning", "health", loopguard_gap="result", job="support")
    other = labelled(
        "LoopguardRunStuck", "warning", "runs", job="support", gen_ai_agent_name="scout"
    )
    elsewhere = labelled(
        "LoopguardRunStuck", "warning", "runs", job="shop", gen_ai_agent_name="coder"
    )

    assert inhibited(alertmanager, [page, stuck, blind, other, elsewhere], [stuck]) == [stuck]


def test_a_page_without_an_agent_hides_only_that_the_same_stop_is_slow(alertmanager: str):
    page = labelled(
        "LoopguardAbortFailed", "critical", "stops", job="a", loopguard_abort_hook="gate"
    )
    slow = labelled("LoopguardAbortSlow", "warning", "stops", job="a", loopguard_abort_hook="gate")
    veto = labelled("LoopguardAbortSlow", "warning", "stops", job="a", loopguard_abort_hook="veto")
    fault = labelled("LoopguardErrors", "warning", "health", job="a", error_type="KeyError")

    assert inhibited(alertmanager, [page, slow, veto, fault], [slow]) == [slow]


def test_where_no_guard_reports_single_services_do_not_say_so(alertmanager: str):
    service = labelled("LoopguardAbsent", "warning", "health", scope="service", job="b")
    everywhere = labelled("LoopguardAbsent", "warning", "health", scope="all")

    assert inhibited(alertmanager, [everywhere, service], [service]) == [service]
