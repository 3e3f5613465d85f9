"""What holds for every recording in `testdata/traces`: without it, no test made of them is one."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from otel_loopguard.spans import SpanRecord
from tests._recordings import FOLDERS, Recording, recordings, scripts, text, true_folders
from tests._recordings import written_scripts as scripts_in_the_file

WITHOUT_TRUTH = {"mcp-native", "mcp-openinference", "mcp1x-openinference"}
"""Their model side was not recorded."""
WITHOUT_EVENTS = {"claude-agent-sdk-cli-otel"}
"""Its agent is a process of its own, which exports its spans in batches."""
EMPTY = {
    Recording("mcp1x-openinference", "endless_noroot"),
    Recording("mcp1x-openinference", "error_tool", "server"),
    Recording("raw-openai-responses-v2", "endless_noroot"),
}
"""What was instrumented emits nothing there, and the application has no span of its own."""
RENAMED = {"ag2-native", "openai-agents-v2", "openai-agents-v2-nocontent"}
"""They give some spans another name after the start."""
USAGE_OF_THE_FIRST_REQUEST_ONLY = {"google-adk-openinference"}
USAGE = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "input_tokens",
)
OF_A_MACHINE = re.compile(rb"/(?:root|home|Users|tmp|opt|usr|var|mnt|srv)\b|[\w.+-]+@[\w-]+\.\w+")


def with_parts(folder: str) -> list[Recording]:
    return [part for recording in recordings(folder) for part in recording.parts]


def test_every_folder_has_its_truth():
    assert set(FOLDERS) - WITHOUT_TRUTH == true_folders()
    assert set(FOLDERS) > WITHOUT_TRUTH


def test_there_are_as_many_as_were_recorded():
    found = [recording for folder in FOLDERS for recording in with_parts(folder)]
    assert len(FOLDERS) == 77
    assert len([recording for recording in found if not recording.part]) == 763
    assert len([recording for recording in found if recording.part == "server"]) == 9
    assert [str(found) for found in found if found.part == "official-exporter"] == [
        "openai-agents-genai-endless-official-exporter"
    ]
    assert sum(len(recording.ended()) for recording in found) == 11_931


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_script_is_there_and_has_its_truth(folder: str):
    assert set(scripts_in_the_file(folder)) == set(scripts(folder))
    assert {"endless", "error_tool"} <= set(scripts(folder))
    for recording in with_parts(folder):
        assert (recording.truth is None) is (folder in WITHOUT_TRUTH or recording.part != "")


@pytest.mark.parametrize("folder", FOLDERS)
def test_spans_can_be_read_and_have_ended(folder: str):
    for recording in with_parts(folder):
        spans = recording.ended()
        assert len({span.span_id for span in spans}) == len(spans), recording
        assert (not spans) is (recording in EMPTY), recording
        assert all(span.ended_ns and span.ended_ns >= span.started_ns > 0 for span in spans)
        assert all(span.name and span.scope for span in spans), recording


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_start_has_its_end_and_the_ends_are_the_spans(folder: str):
    for recording in with_parts(folder):
        events = recording.events()
        if folder in WITHOUT_EVENTS or recording.part == "official-exporter":
            assert events == []
            continue
        started: dict[int, SpanRecord] = {}
        for event in events:
            span = event.record
            if event.is_start:
                assert span.span_id not in started, recording
                started[span.span_id] = span
            else:
                assert span.span_id in started, recording
        ends = [event.record for event in events if not event.is_start]
        assert ends == recording.ended(), recording
        assert len(ends) == len(started), recording


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_start_and_its_end_are_of_one_span(folder: str):
    renamed = False
    for recording in with_parts(folder):
        events = recording.events()
        ended = {event.record.span_id: event.record for event in events if not event.is_start}
        for start in (event.record for event in events if event.is_start):
            end = ended[start.span_id]
            for field in ("trace_id", "parent_id", "parent_is_remote", "scope", "started_ns"):
                assert getattr(start, field) == getattr(end, field), (recording, field)
            renamed |= start.name != end.name
    assert renamed is (folder in RENAMED)


@pytest.mark.parametrize("folder", FOLDERS)
def test_times_and_threads_are_known_of_live_events(folder: str):
    for recording in with_parts(folder):
        for event in recording.written_events():
            known = event.t is not None and event.thread is not None
            assert known is not folder.startswith("vercel-ai"), recording


@pytest.mark.parametrize("folder", sorted(true_folders()))
def test_where_spans_have_usage_it_is_what_the_server_said(folder: str):
    """Model spans of one kind come to the tokens; others repeat them, or have sums of them."""
    for recording in recordings(folder):
        if recording.tokens is None:
            continue
        said: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        for span in recording.ended():
            for key in USAGE:
                if isinstance(tokens := span.attributes.get(key), int):
                    said[key, span.scope, span.name.split()[0]] += tokens
        if folder in USAGE_OF_THE_FIRST_REQUEST_ONLY:
            assert set(said.values()) == {100}
        elif said:
            assert recording.tokens.input in said.values(), (recording, said)


def test_the_formula():
    assert Recording("langchain-genai", "finish3").tokens == (390, 60)
    assert Recording("openai-agents-genai", "endless").tokens == (1_640, 160)
    assert Recording("strands-native", "finish3").tokens == (300, 60)
    assert Recording("strands-native", "error_tool").tokens is None
    assert Recording("mcp-native", "endless").tokens is None


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_names_the_machine_or_a_person(folder: str):
    assert OF_A_MACHINE.search(text(folder)) is None
