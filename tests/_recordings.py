"""The recordings in `testdata/traces`: what frameworks emit, and what really happened."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from otel_loopguard.replay.otlp_json import read_spans
from otel_loopguard.spans import SpanRecord

TRACES = Path(__file__).parent / "testdata" / "traces"
_SUFFIX = ".jsonl.xz"

FOLDERS: tuple[str, ...] = tuple(
    sorted(path.name.removesuffix(_SUFFIX) for path in TRACES.glob(f"*{_SUFFIX}"))
)
PARTS = ("server", "official-exporter")
"""What some scripts have beside their own spans: another process, another exporter."""

_PART_A = ("openai-agents", "langchain", "pydantic", "raw", "anthropic-toolrunner")
"""Folders whose model server counted the tool results in a request as input."""


class Truth(NamedTuple):
    """What the model server and the tools counted."""

    model_requests: int
    tool_executions: int


class Tokens(NamedTuple):
    """What the model server said that it used."""

    input: int
    output: int


class Event(NamedTuple):
    """The start or the end of a span, with the thread and the asyncio task it happened in."""

    record: SpanRecord
    """Without `ended_ns` at a start, and with the attributes that were there then."""
    thread: str | None
    """Not known in the recordings of Vercel's AI SDK."""
    task: str | None
    """Known of starts only."""

    @property
    def is_start(self) -> bool:
        return self.record.ended_ns is None


class WrittenEvent(msgspec.Struct, forbid_unknown_fields=True):
    """An event as it is in a file: `start` or `end` is the id of its span."""

    start: str = ""
    end: str = ""
    name: str = ""
    trace: str = ""
    parent: str | None = None
    scope: str | None = None
    t: int | None = None
    thread: str | None = None
    task: str | None = None
    attributes: dict[str, str | int | float | bool | list[Any]] = {}


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    spans: list[msgspec.Raw]
    events: msgspec.Raw = msgspec.Raw(b"[]")


class _Script(_Part, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    script: str
    server: _Part | None = None
    official_exporter: _Part | None = None


_TRUTH: Mapping[str, Mapping[str, Mapping[str, int]]] = json.loads(
    (TRACES / "truth.json").read_text("utf-8")
)
_SCRIPT = msgspec.json.Decoder(_Script)
_EVENTS = msgspec.json.Decoder(list[WrittenEvent])


@cache
def text(folder: str) -> bytes:
    """Return the lines of a folder; they are decompressed once and then kept."""
    return lzma.decompress((TRACES / f"{folder}{_SUFFIX}").read_bytes())


@cache
def _folder(folder: str) -> dict[str, _Script]:
    found = _SCRIPT.decode_lines(text(folder))
    return {script.script: script for script in found}


class Recording(NamedTuple):
    """A script of a folder, or a part of it."""

    folder: str
    script: str
    part: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, self))

    def lines(self) -> list[bytes]:
        """Return the OTLP/JSON requests as they are in the recording, one a line."""
        return [bytes(request) + b"\n" for request in self._written.spans]

    def ended(self) -> list[SpanRecord]:
        """Return the spans in the order in which they ended (`claude-agent-sdk-cli-otel`: sent)."""
        return [record for request in self._written.spans for record in read_spans(bytes(request))]

    def events(self) -> list[Event]:
        """Return starts and ends in their order; an end is one of `ended()`.

        Nothing where they were not recorded: `claude-agent-sdk-cli-otel` and `official-exporter`.
        """
        ended = {record.span_id: record for record in self.ended()}
        return [_event(written, ended) for written in self.written_events()]

    def written_events(self) -> list[WrittenEvent]:
        """Return the events as they are in the file."""
        return _EVENTS.decode(self._written.events)

    @property
    def parts(self) -> tuple[Recording, ...]:
        """The recording itself, and the parts that were recorded beside it."""
        script = _folder(self.folder)[self.script]
        beside = (script.server, script.official_exporter)
        named = zip(PARTS, beside, strict=True)
        return (self, *(self._replace(part=name) for name, part in named if part is not None))

    @property
    def truth(self) -> Truth | None:
        """What really happened; `None` for MCP's folders, and for parts."""
        counted = _TRUTH.get(self.folder, {}).get(self.script)
        return None if counted is None or self.part else Truth(**counted)

    @property
    def tokens(self) -> Tokens | None:
        """What `endless*` and `finish3*` used, where a turn has one call; else `None`."""
        if self.truth is None or self.script.partition("_")[0] not in {"endless", "finish3"}:
            return None
        n = self.truth.model_requests
        results = n * (n - 1) // 2 if self.folder.startswith(_PART_A) else 0
        return Tokens(100 * n + 30 * results, 20 * n)

    @property
    def _written(self) -> _Part:
        script = _folder(self.folder)[self.script]
        if not self.part:
            return script
        part = {"server": script.server, "official-exporter": script.official_exporter}[self.part]
        assert part is not None, f"{self.folder} {self.script} has no {self.part}"
        return part


def scripts(folder: str) -> tuple[str, ...]:
    """Return the scripts of a folder; only folders without a truth are read for that."""
    return tuple(_TRUTH[folder] if folder in _TRUTH else _folder(folder))


def written_scripts(folder: str) -> tuple[str, ...]:
    """Return the scripts that are in a folder's file."""
    return tuple(_folder(folder))


def recordings(*folders: str) -> list[Recording]:
    """Return the recordings of folders, or of all, without their parts."""
    return [
        Recording(folder, script) for folder in folders or FOLDERS for script in scripts(folder)
    ]


def true_folders() -> frozenset[str]:
    """Return the folders of which it is known what happened."""
    return frozenset(_TRUTH)


def _event(written: WrittenEvent, ended: Mapping[int, SpanRecord]) -> Event:
    """Return an event; what a start does not say and the span's end cannot change is the end's."""
    if written.end:
        return Event(ended[int(written.end, 16)], written.thread, written.task)
    span_id = int(written.start, 16)
    end = ended.get(span_id)
    started_ns, scope = written.t, written.scope
    record = SpanRecord(
        name=written.name,
        trace_id=int(written.trace, 16),
        span_id=span_id,
        parent_id=int(written.parent, 16) if written.parent else None,
        parent_is_remote=end is not None and end.parent_is_remote,
        scope=scope if scope is not None else end.scope if end is not None else "",
        attributes={
            key: tuple(value) if isinstance(value, list) else value
            for key, value in written.attributes.items()
        },
        started_ns=started_ns if started_ns is not None else end.started_ns if end else 0,
    )
    return Event(record, written.thread, written.task)
