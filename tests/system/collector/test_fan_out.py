"""Fan-out over two collectors: what belongs together arrives in one place."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests._collector import Collector, eventually, running, span, spans_of, to_file

TRACES = 100
SPANS = 4


class Both(NamedTuple):
    """The one that divides, and the files of the two behind it."""

    balancer: Collector
    files: tuple[Path, Path]

    def spans(self) -> list[list[dict[str, Any]]]:
        return [spans_of(file) for file in self.files]

    def send(self, spans: list[dict[str, Any]]) -> None:
        """Send spans of all traces in turn, so that each trace comes in several requests."""
        for number in range(SPANS):
            self.balancer.send(spans[number::SPANS])
        eventually(
            lambda: sum(map(len, self.spans())) == len(spans), "all spans", self.balancer.said
        )


@contextmanager
def both(folder: Path, name: str) -> Generator[Both]:
    files = (folder / "first.jsonl", folder / "second.jsonl")
    with (
        running(folder / "first", "agent.yaml", to_file(files[0], "traces")) as first,
        running(folder / "second", "agent.yaml", to_file(files[1], "traces")) as second,
        running(
            folder / "balancer",
            name,
            variables={
                "FIRST_ENDPOINT": f"127.0.0.1:{first.grpc_port}",
                "SECOND_ENDPOINT": f"127.0.0.1:{second.grpc_port}",
            },
        ) as balancer,
    ):
        yield Both(balancer, files)


def test_by_trace_each_trace_is_in_one_place(tmp_path: Path):
    spans = [
        span(trace, number) for trace in range(1, TRACES + 1) for number in range(1, SPANS + 1)
    ]
    with both(tmp_path, "fan-out-by-trace.yaml") as pair:
        pair.send(spans)
        traces = [{each["traceId"] for each in found} for found in pair.spans()]
    assert not traces[0] & traces[1]
    assert all(len(each) > TRACES / 5 for each in traces)


def test_by_conversation_each_conversation_is_in_one_place(tmp_path: Path):
    """Each has four traces: by trace id they would be in both."""
    conversations = TRACES // SPANS
    spans = [
        span(trace, number, attributes={"gen_ai.conversation.id": f"talk {trace % conversations}"})
        for trace in range(1, TRACES + 1)
        for number in range(1, SPANS + 1)
    ]
    with both(tmp_path, "fan-out-by-conversation.yaml") as pair:
        pair.send(spans)
        found = [
            {each["attributes"]["gen_ai.conversation.id"] for each in spans}
            for spans in pair.spans()
        ]
    assert not found[0] & found[1]
    assert len(found[0] | found[1]) == conversations
    assert all(len(each) > conversations / 5 for each in found)
