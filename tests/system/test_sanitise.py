"""`otel-loopguard sanitise` in a process: what it writes, keeps, replaces and reports."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests._command import ROOT, command
from tests._recorded_protobuf import messages, with_four_bytes
from tests._recordings import Recording

ENDLESS = b"".join(Recording("langchain-genai", "endless").lines())
RUN = {
    "run_id": "order of Jane Doe",
    "steps": [
        {"type": "tool", "name": "search", "arguments": {"q": "Jane Doe"}, "result": "no results"}
    ]
    * 6,
}


def sanitise(*arguments: str, cwd: Path, stdin: bytes = b"", code: int = 0) -> bytes:
    result = command("sanitise", *arguments, "-o", "-", cwd=cwd, stdin=stdin)
    told = result.stderr.decode()
    assert result.returncode == code, told
    assert all("names that are kept: " in line for line in told.splitlines())
    return result.stdout


def replayed(text: bytes, cwd: Path) -> list[dict[str, Any]]:
    result = command("replay", "--json", "--strict", "-", cwd=cwd, stdin=text)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def without_ids(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**run, "run_id": "", "source": ""} for run in runs]


def test_replay_says_of_it_what_it_says_of_the_recording(tmp_path: Path):
    written = sanitise("-", cwd=tmp_path, stdin=ENDLESS)
    before, after = replayed(ENDLESS, tmp_path), replayed(written, tmp_path)
    assert without_ids(after) == without_ids(before)
    assert before[0]["tripped"]
    assert after[0]["run_id"] != before[0]["run_id"]


def test_it_begins_at_a_fixed_moment_and_takes_as_long(tmp_path: Path):
    def starts(text: bytes) -> list[int]:
        spans = [
            span
            for line in text.splitlines()
            for resource in json.loads(line)["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
        return [int(span["startTimeUnixNano"]) for span in spans]

    before, after = starts(ENDLESS), starts(sanitise("-", cwd=tmp_path, stdin=ENDLESS))
    assert min(after) // 10**9 == 1_767_225_600
    assert [at - min(after) for at in after] == [at - min(before) for at in before]


def test_each_time_it_is_drawn_anew_and_with_a_seed_it_is_not(tmp_path: Path):
    line = json.dumps(RUN).encode()
    one, other = (sanitise("-", cwd=tmp_path, stdin=line) for _ in range(2))
    assert one != other
    one, other = (sanitise("-", "--seed", "s" * 99, cwd=tmp_path, stdin=line) for _ in range(2))
    assert one == other
    assert one != sanitise("-", "--seed", "t", cwd=tmp_path, stdin=line)


def test_names_of_tools_are_kept_unless_they_are_to_be_replaced(tmp_path: Path):
    line = json.dumps({"steps": [{"type": "tool", "name": "find_invoice", "result": 1}]}).encode()
    assert b'"find_invoice"' in sanitise("-", cwd=tmp_path, stdin=line)
    renamed = sanitise("-", "--rename", cwd=tmp_path, stdin=line)
    assert b"invoice" not in renamed
    assert replayed(renamed, tmp_path)[0]["tool_calls"] == 1


def test_a_word_is_kept_that_is_named(tmp_path: Path):
    line = json.dumps(RUN).encode()
    assert b"Doe" not in sanitise("-", cwd=tmp_path, stdin=line)
    assert b"Doe" in sanitise("-", "--keep", "doe", cwd=tmp_path, stdin=line)


def test_a_bad_line_is_named_and_the_others_are_written(tmp_path: Path):
    good = json.dumps(RUN).encode()
    (tmp_path / "runs.jsonl").write_bytes(b"%b\n{nothing\n%b\n" % (good, good))
    arguments = ("sanitise", "runs.jsonl", "-o", "out.jsonl.gz")
    result = command(*arguments, cwd=tmp_path)
    assert result.returncode == 0
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["out.jsonl.gz", "runs.jsonl"]
    assert result.stderr.startswith(b"runs.jsonl:2: ")
    written = gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes())
    assert len(written.splitlines()) == 2
    assert command(*arguments, "--strict", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(("gone.jsonl", "-o", "-"), "gone.jsonl: it cannot be read", id="no-file"),
        pytest.param(("-", "-o", "gone/out"), "'gone/out' cannot be written", id="no-folder"),
        pytest.param(("-", "-o", "-", "--policy", "gone"), "gone", id="no-policy"),
        pytest.param(("-",), "--out", id="no-output"),
        pytest.param(("-", "-o", "-", "--keep", "4711"), "'4711' is no word", id="no-word"),
        pytest.param(("in.jsonl", "-o", "./in.jsonl"), "is what is read", id="over-the-input"),
        pytest.param(("gone.jsonl", "-o", "in.jsonl"), "'in.jsonl' is left", id="nothing-read"),
    ],
)
def test_what_cannot_be_done_exits_with_2(tmp_path: Path, arguments: tuple[str, ...], says: str):
    line = json.dumps(RUN).encode()
    (tmp_path / "in.jsonl").write_bytes(line)
    result = command("sanitise", *arguments, cwd=tmp_path, stdin=line)
    assert result.returncode == 2
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("in.jsonl", line)]
    assert says in result.stderr.decode()


def test_what_replay_says_otherwise_is_told(tmp_path: Path):
    """A policy that names an argument does not find it under another name."""
    policy = '[tools.search]\nignore_arguments = ["buyer_no"]\n'
    (tmp_path / "policy.toml").write_text(policy, "utf-8")
    steps = [
        {"type": "tool", "name": "search", "arguments": {"buyer_no": n, "q": "x"}, "result": n % 2}
        for n in range(20)
    ]
    line = json.dumps({"steps": steps}).encode()
    arguments = ("sanitise", "-", "-o", "out.jsonl", "--policy", "policy.toml")
    result = command(*arguments, cwd=tmp_path, stdin=line)
    assert result.returncode == 3
    assert b"out.jsonl: run line-1: " in result.stderr
    kept = command(*arguments, "--keep", "buyer_no", cwd=tmp_path, stdin=line)
    assert kept.stderr == b"out.jsonl: names that are kept: search\n"
    assert kept.returncode == 0


def test_protobuf_comes_out_as_lines_that_replay_the_same(tmp_path: Path):
    recording = Recording("raw-openai-chat-genai", "endless")
    lines, packed = recording.lines(), with_four_bytes(messages(recording))
    written = sanitise("-", cwd=tmp_path, stdin=packed)
    assert without_ids(replayed(written, tmp_path)) == without_ids(
        replayed(b"".join(lines), tmp_path)
    )


SECRETS = (
    *("jane.doe@example.com", "Jane", "Kowalczyk", "+49 170 5550123", "5550123", "555-0199"),
    *("sk-proj-Abc9dEf8GhIjKlMnOpQr7St6", "AKIAQ3EXAMPLEKEY7ZZZ", "ghp_16C7e42F292c6912E7710c8"),
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    *("4111111111111111", "DE89370400440532013000", "192.168.17.23", "host-17.corp.example"),
    *("/home/kowalczyk/secret.txt", "M\u00fcllerstra\u00dfe", "1984-03-12"),
)
PLANTED = f"Bearer {' '.join(SECRETS)}"


def attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def planted_request() -> dict[str, Any]:
    """Return a request with secrets in every place that takes a text."""
    deep = json.dumps({"note": PLANTED, SECRETS[0]: json.dumps([PLANTED, {"n": 4111111111111111}])})
    attributes = [
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", "search"),
        attribute("gen_ai.tool.call.arguments", deep),
        attribute("gen_ai.tool.call.result", PLANTED),
        attribute("gen_ai.input.messages", json.dumps([{"role": "user", "content": deep}])),
        attribute("gen_ai.conversation.id", PLANTED),
        attribute("gen_ai.usage.input_tokens", PLANTED),
        attribute(f"customer.{SECRETS[1]}", PLANTED),
        {"key": "phone", "value": {"intValue": "4111111111111111"}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": PLANTED}]}}},
        {
            "key": "map",
            "value": {"kvlistValue": {"values": [attribute(SECRETS[0], PLANTED)]}},
        },
        {
            "key": "raw",
            "value": {"bytesValue": base64.b64encode(PLANTED.encode()).decode()},
        },
    ]
    odd = odd_attributes()
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "traceState": PLANTED,
        "name": f"execute_tool {PLANTED}",
        "startTimeUnixNano": "1700000000000000001",
        "endTimeUnixNano": "1700000001000000001",
        "attributes": attributes + [each for each in odd if "read" in each],
        "events": [
            {
                "name": PLANTED,
                "timeUnixNano": PLANTED,
                "attributes": [attribute("exception.message", PLANTED)],
            }
        ],
        "links": [
            {
                "traceId": PLANTED,
                "spanId": "b7ad6b7169203331",
                "attributes": [
                    attribute("x", PLANTED),
                    {"key": "y", "value": {"intValue": PLANTED}},
                    {"key": "z", "value": {"bytesValue": PLANTED}},
                    *odd,
                ],
            },
            PLANTED,
            {
                "traceId": [PLANTED],
                "spanId": {PLANTED: 1},
                "attributes": PLANTED,
                "flags": [PLANTED],
            },
        ],
        "status": {"code": 2, "message": PLANTED},
        "newField": PLANTED,
    }
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [attribute("host.name", PLANTED), *odd]},
                "scopeSpans": [
                    {
                        "scope": {"name": PLANTED, "version": PLANTED, "attributes": odd},
                        "spans": [span],
                        "schemaUrl": PLANTED,
                    },
                    {
                        "scope": {"version": [PLANTED], "attributes": PLANTED},
                        "schemaUrl": [PLANTED],
                    },
                ],
                "schemaUrl": PLANTED,
            },
            {"resource": PLANTED, "schemaUrl": {PLANTED: PLANTED}},
        ]
    }


def odd_attributes() -> list[Any]:
    """Return attributes as nobody writes them; `read` marks those that a reader takes."""
    string = {"stringValue": "a", PLANTED: 1, "other": PLANTED}
    return [
        PLANTED,
        [PLANTED],
        {"key": "host.owner", "value": PLANTED},
        {"key": [PLANTED], "value": {"stringValue": "a"}},
        {"key": {PLANTED: PLANTED}},
        {"key": "a", "value": string, "read": PLANTED},
        {"key": "b", "value": {PLANTED: PLANTED}, "read": [PLANTED]},
        {"key": "c", "value": {"arrayValue": {"values": [string], "x": PLANTED}}, "read": 1},
        {"key": "d", "value": {"arrayValue": PLANTED}},
        {"key": "e", "value": {"kvlistValue": {"values": PLANTED}}},
        *(
            {"key": name, "value": {kind: value}}
            for name in ("gen_ai.usage.x", "other")
            for kind in ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")
            for value in (PLANTED, [PLANTED], {PLANTED: PLANTED})
        ),
    ]


def planted_run() -> dict[str, Any]:
    """Return a line of a steps file with secrets in every field."""
    texts = ("name", "result", "error", "finish_reason", "provider", "model", "agent", "parent")
    more = ("run", "call_id", "batch", "args_sha", "contains", "other")
    step: dict[str, Any] = dict.fromkeys((*texts, *more), PLANTED)
    step |= {"type": "llm", "arguments": {SECRETS[0]: [PLANTED, 4111111111111111]}}
    step["tool_calls"] = [{"name": PLANTED, "arguments": {"q": PLANTED}, "id": PLANTED}]
    line = dict.fromkeys(("run_id", "label", "source", "agent", "model", "comment"), PLANTED)
    return {**line, "steps": [step], "policy": {"agents": {PLANTED: {}}}}


@pytest.mark.parametrize(
    "line", [pytest.param(planted_request(), id="spans"), pytest.param(planted_run(), id="steps")]
)
def test_nothing_of_what_was_planted_anywhere_comes_out(tmp_path: Path, line: dict[str, Any]):
    recorded = json.dumps(line).encode()
    written = sanitise("-", "--policy", "none", cwd=tmp_path, stdin=recorded).decode()
    shown = written + json.dumps(json.loads(written), ensure_ascii=False)
    assert [secret for secret in (*SECRETS, "4111111111111111") if secret in shown] == []
    assert [
        name for name in ("kowalczyk", "jane", "corp", "m\u00fcller") if name in shown.lower()
    ] == []
    assert base64.b64encode(PLANTED.encode()).decode()[:20] not in shown
    assert replayed(written.encode(), tmp_path)


def test_the_command_is_named_in_help():
    assert b"sanitise" in command("--help", cwd=ROOT).stdout
