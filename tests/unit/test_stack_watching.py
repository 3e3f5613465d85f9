"""What `make stack` tells of: each trip once, as it comes, whoever else is slow to answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from scripts.stack import http_client
from scripts.stack.alertmanager import Alertmanager
from scripts.stack.exported import Exported
from scripts.stack.gateway import Gateway
from scripts.stack.http_client import NoAnswerError
from scripts.stack.pages import Pager
from scripts.stack.programs import running
from scripts.stack.prometheus import Alert, Prometheus
from scripts.stack.waiting import TooLateError, eventually
from scripts.stack.watching import Watch
from scripts.stack.whole import Stack
from scripts.stack.witness import LOOK_S, witness


def trip(trace: int, at_s: int) -> bytes:
    """A line of the file, with a trip of so many seconds after 1970."""
    said = {"loopguard.action": "abort", "loopguard.rule": "repeated_result"}
    event = {
        "timeUnixNano": str(at_s * 10**9),
        "name": "loopguard.violation",
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in said.items()],
    }
    span = {"traceId": f"{trace:032x}", "spanId": f"{1:016x}", "name": "run", "events": [event]}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode() + b"\n"


@pytest.fixture
def silent() -> Generator[str]:
    """An address that takes questions and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def stack(tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Stack]:
    monkeypatch.setattr(http_client, "LIMIT_S", 0.1)
    with running("nothing", ["sleep", "60"], tmp_path) as program:
        yield Stack(
            folder=tmp_path,
            gateway=Gateway("", "", tmp_path / "traces.jsonl", program),
            prometheus=Prometheus(silent, program),
            alertmanager=Alertmanager("", program),
            pager=Pager(),
        )


def told(capsys: pytest.CaptureFixture[str]) -> list[int]:
    """The traces of the trips that were told of since the last time."""
    lines = capsys.readouterr().out.splitlines()
    return [int(line.split()[-1], 16) for line in lines if " trip " in line]


def test_a_trip_that_comes_late_is_told_once_and_no_other_twice(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    watch, file = Watch(stack), stack.gateway.exported
    watch.look()
    assert told(capsys) == []
    file.write_bytes(trip(1, at_s=20) + trip(2, at_s=30))
    watch.look()
    assert told(capsys) == [1, 2]
    with file.open("ab") as more:
        more.write(trip(3, at_s=10))
    watch.look()
    assert told(capsys) == [3]


def test_a_line_is_read_when_it_is_whole_and_not_again(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    first, second = trip(1, at_s=1), trip(2, at_s=2)
    file.write_bytes(first + second[:40])
    spans = Exported(file)
    assert [int(span.trace_id, 16) for span in spans.more()] == [1]
    file.write_bytes(b"?" * len(first) + second)
    assert [int(span.trace_id, 16) for span in spans.more()] == [2]
    assert spans.more() == []


def test_a_question_without_an_answer_is_asked_again(stack: Stack) -> None:
    with pytest.raises(NoAnswerError, match="was not answered: TimeoutError"):
        stack.prometheus.alerts()
    with pytest.raises(TooLateError, match="the last answer was NoAnswerError"):
        eventually("alerts", stack.prometheus.alerts, within_s=0)
    answers: Iterator[str | NoAnswerError] = iter([NoAnswerError(), "an answer"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, NoAnswerError):
            raise answer
        return answer

    assert eventually("an answer", ask, within_s=5) == "an answer"


def test_a_witness_goes_on_when_it_had_no_answer(stack: Stack) -> None:
    asked: list[int] = []

    class Slow(Prometheus):
        def alerts(self) -> list[Alert]:
            asked.append(1)
            if len(asked) == 1:
                raise NoAnswerError("not now")
            return [Alert(labels={"alertname": "A"}, annotations={}, state="firing")]

    with witness(Slow(stack.prometheus.url, stack.prometheus.program)) as seen:
        eventually("a sight", seen.sights, within_s=50 * LOOK_S)
    assert seen.states() == ["firing"]
