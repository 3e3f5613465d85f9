"""Where messages begin and end in a file, and what a file is by what it begins with."""

from __future__ import annotations

import gzip
import io
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.policy import Policy
from otel_loopguard.replay import Problem, ReplayError, replay_file
from otel_loopguard.replay.contents import framing_in
from otel_loopguard.replay.proto_frames import Framing, Message, messages_of
from otel_loopguard.replay.source import numbered_lines
from tests._recorded_protobuf import (
    logs,
    messages,
    metrics,
    part,
    varint,
    with_four_bytes,
    with_varints,
)
from tests._recordings import Recording

FINISHED = Recording("openai-agents-genai", "finish3")
WRITE: dict[Framing, Callable[[Iterable[bytes]], bytes]] = {
    "four bytes": with_four_bytes,
    "varint": with_varints,
    "bare": b"".join,
}
BAD = b"\xff" * 40


@pytest.mark.parametrize("framing", WRITE)
@pytest.mark.parametrize(
    "first", [messages(FINISHED)[0], metrics(), logs()], ids=["spans", "metrics", "logs"]
)
def test_the_framing_is_found(framing: Framing, first: bytes):
    written = WRITE[framing]([first, *messages(FINISHED)])
    assert framing_in(written) == framing
    assert framing_in(written[:64]) == framing, "a pipe may not give more at first"


@pytest.mark.parametrize("framing", ["four bytes", "varint"])
@pytest.mark.parametrize("before", [[b""], [b"", b""], [BAD], [BAD, b"", BAD]])
def test_the_framing_is_found_behind_empty_and_broken_messages(
    framing: Framing, before: list[bytes]
):
    assert framing_in(WRITE[framing]([*before, *messages(FINISHED)])) == framing


@pytest.mark.parametrize("size", range(20, 200))
def test_a_message_that_begins_as_json_does_is_told_from_it(size: int):
    # Lengths are any byte: among these are white space, brackets and quotation marks.
    padding = part(1, b"k" * (size - 20))
    request = part(1, part(1, padding) + part(2, part(2, part(1, bytes(range(1, 17))))))
    for framing, write in WRITE.items():
        assert framing_in(write([request])) == framing


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b" \r\n\t",
        b'{"steps": []}',
        b'\xef\xbb\xbf \n{ "resourceSpans": [',
        b'{\n  "a": "loop"\n}',
        b"{}\n",
        b"{\n",
        b"[1]\n[2]\n",
        b'[\n{\n"run_id": "a"\n}\n]',
        b"7\n",
        b"nothing of the kind\n",
        "Ünï\n".encode(),
        b"\x1b[1mcoloured\x1b[0m\n",
        b'\x00\x00\x00\x00\n{"steps": []}\n',
        b'{"run_id": "\x00\x00',
    ],
)
def test_text_is_read_as_lines(begin: bytes):
    assert framing_in(begin) is None


def test_a_short_message_with_a_resource_is_no_length():
    resource = part(1, part(1, part(1, b"k") + part(2, part(1, b"v"))))
    request = part(1, resource + part(2, part(2, part(1, bytes(range(1, 17))))))
    assert request[0] == request[2] == request[4] == 0x0A
    for framing, write in WRITE.items():
        assert framing_in(write([request, request])) == framing


def test_lengths_may_be_any():
    parts = [b"x" * size for size in (0, 1, 127, 128, 300, 1 << 16, (1 << 20) + 1)]
    for framing in ("four bytes", "varint"):
        found = list(messages_of(io.BytesIO(WRITE[framing](parts)), framing))
        assert found == parts
        assert all(type(each) is Message and each.expected_bytes is None for each in found)


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff", b"\x80\x00\x00\x00"])
def test_a_length_that_no_message_has_ends_the_file(head: bytes):
    found = messages_of(io.BytesIO(b"\x00\x00\x00\x01x" + head + b"rest"), "four bytes")
    assert next(found) == b"x"
    with pytest.raises(ReplayError, match="expected a message of at most 2147483647 bytes"):
        next(found)


def test_a_number_of_more_than_ten_bytes_is_no_length():
    with pytest.raises(ReplayError, match="expected a number of at most 10 bytes"):
        list(messages_of(io.BytesIO(b"\xff" * 20), "varint"))


@pytest.mark.parametrize(("framing", "head"), [("four bytes", b"\0\0"), ("varint", b"\x80")])
def test_a_length_that_is_cut_is_a_message_that_is_cut(framing: Framing, head: bytes):
    *_, last = messages_of(io.BytesIO(WRITE[framing]([b"x"]) + head), framing)
    assert (last, last.expected_bytes is None) == (head, False)


@given(st.binary())
def test_any_bytes_are_messages_or_an_error(data: bytes):
    for framing in WRITE:
        try:
            assert all(len(each) <= len(data) for each in messages_of(io.BytesIO(data), framing))
        except ReplayError:
            continue


@pytest.mark.parametrize("framing", WRITE)
def test_nothing_that_is_cut_goes_unnoticed(tmp_path: Path, framing: Framing):
    found = messages(FINISHED)[:2]
    whole = WRITE[framing](found)
    ends = {0, *(len(WRITE[framing](found[:count])) for count in (1, 2))}
    for length in range(len(whole) + 1):
        (tmp_path / "recording").write_bytes(whole[:length])
        problems = [
            item
            for item in replay_file(str(tmp_path / "recording"), Policy())
            if isinstance(item, Problem)
        ]
        # A single byte of a bare one is that of an empty line.
        blank = whole[:length] == b"\n"
        assert bool(problems) == (length not in ends and not blank), length


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_messages_are_numbered_from_1_and_bytes_are_counted(
    tmp_path: Path, pack: Callable[[bytes], bytes]
):
    file = tmp_path / "file"
    file.write_bytes(pack(with_four_bytes(messages(FINISHED) * 100)))
    told: list[int] = []
    found = list(numbered_lines(str(file), told.append))
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    assert [message for _, message in found] == messages(FINISHED) * 100
    assert sum(told) == file.stat().st_size


def test_a_pipe_may_give_a_byte_at_a_time(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    whole = with_four_bytes(messages(FINISHED)[:2])

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for place in range(len(whole)):
                file.write(whole[place : place + 1])
                if place < 9:  # Until it can be told what it is.
                    time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    assert [message for _, message in numbered_lines(str(pipe))] == messages(FINISHED)[:2]
    writer.join()


def test_varint_is_that_of_protobuf():
    assert [varint(n) for n in (0, 127, 128, 300)] == [b"\0", b"\x7f", b"\x80\x01", b"\xac\x02"]
