"""Which errors are the same error, and which results are errors in words: one fact a row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.values.failures import error_in, error_signature

TRACEBACK = """Traceback (most recent call last):
  File "/app/main.py", line {line}, in <module>
    total(5)
    ^^^^^
ValueError: bad value"""

SAME: list[tuple[str, str, str]] = [
    ("port", "connection refused: 10.0.0.5:4321", "connection refused: 10.0.0.5:80"),
    ("line numbers", TRACEBACK.format(line=12), TRACEBACK.format(line=117)),
    ("time", "20:00:00 timed out after 1.5s", "20:00:01 timed out after 1.7s"),
    ("request", "failed (request 12345)", "failed (request 12346)"),
    ("three digits that are no status", "user 404 was removed", "user 405 was removed"),
    ("hexadecimal", "no object 9f0abc12", "no object 1c0abc7d"),
    ("hexadecimal with a letter first", "no object c0abc7d9", "no object d1abc7d0"),
    ("white space", "a  b\n", " a b"),
    (
        "frames of JavaScript",
        "TypeError: x\n    at f (a.js:1:2)",
        "TypeError: x\n    at g (b.js:3)",
    ),
    ("frames of Java", "a.BError: x\n\tat a.b(C.java:1)\n\t... 12 more", "a.BError: x"),
    ("wrapping", "<output>\nboom\n</output>\n```", "boom"),
    ("line and column", "a.ts(120,5): bad", "a.ts(121,5): bad"),
    ("line after a colon", "a.py:404: bad", "a.py:405: bad"),
    ("advice", "Error: x\n Please fix your mistakes.", "Error: x"),
    ("apostrophe", "can't read 5, won't", "can't read 6, won't"),
]

OTHER: list[tuple[str, str, str]] = [
    ("status", "HTTP 429", "HTTP 500"),
    ("status in front", "404 not found", "410 not found"),
    ("status after a word", "Error: 404 not found", "Error: 500 not found"),
    ("status with its reason", "the server said 429 Too Many", "the server said 503 Too Many"),
    ("status by name", "status code 502", "status code 504"),
    ("status in brackets", "failed (401)", "failed (403)"),
    ("exit code", "exit code 1", "exit code 127"),
    ("exit status", "returned non-zero exit status 1.", "returned non-zero exit status 2."),
    ("signal", "killed by signal 9", "killed by signal 15"),
    ("number of an error", "Server error 500", "Server error 503"),
    ("number of a database's error", "ERROR 1045 (28000): no", "ERROR 1046 (28000): no"),
    ("response", "got a 503 response", "got a 504 response"),
    ("advice", "Error: x\n Please fix your mistakes.", "Error: y\n Please fix your mistakes."),
    ("errno", "[Errno 2] no", "[Errno 13] no"),
    ("type", "ValueError: x", "TypeError: x"),
    ("message", "ValueError: x", "ValueError: y"),
    ("type above the message", "AError: see\nfailed", "BError: see\nfailed"),
    ("host", "connection refused: 10.0.0.5", "connection refused: 10.0.0.6"),
    ("quoted", "no key 'k5'", "no key 'k6'"),
    ("path", "no file /data/5.txt", "no file /data/6.txt"),
    ("name", "unknown column col_5", "unknown column col_6"),
    ("code of a compiler", "error TS2304: x", "error TS2305: x"),
    ("version", "needs 3.11.2", "needs 3.12.2"),
    ("tests", "7 failed, 20 passed in 1.5s", "6 failed, 21 passed in 1.5s"),
    ("tests of unittest", "FAILED (failures=2)", "FAILED (failures=1)"),
    ("exit code after the cause", "no file\nexit status 1", "no memory\nexit status 1"),
]


def rows(table: list[tuple[str, str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("one", "other"), [pytest.param(one, other, id=name) for name, one, other in table]
    )


@rows(SAME)
def test_what_differs_from_call_to_call_makes_no_other_error(one: str, other: str) -> None:
    assert one != other
    assert error_signature(one) == error_signature(other)


@rows(OTHER)
def test_another_cause_is_another_error(one: str, other: str) -> None:
    assert error_signature(one) != error_signature(other)


@pytest.mark.parametrize(
    ("error", "signature"),
    [
        ("", ""),
        ("\n \n", ""),
        ("---\n===", "--- ==="),
        (TRACEBACK.format(line=12), "ValueError: bad value"),
        ("a.BError: x\n\tat a.b(C.java:1)\nmore of it", "a.BError: more of it"),
        ("panic: x 5\n\ngoroutine 1 [running]:\nexit status 2", "panic: x #"),
        ("x" * 10_000, "x" * 160),
        ("begin " + "x" * 10_000, "begin " + "x" * 154),
        ("x" * 4_000 + "\nboom 5\n" + "\n" * 200, "boom #"),
        ("ValueError: x", "ValueError: x"),
        ("x" * 10_000 + "\nboom 5", "boom #"),
        ("boom \udc80 5", "boom \udc80 #"),
    ],
)
def test_a_signature(error: str, signature: str) -> None:
    assert error_signature(error) == signature


def nested(key: str, layers: int) -> object:
    return {key: nested(key, layers - 1)} if layers else "boom"


ERRORS: list[tuple[str, object, str]] = [
    ("prefix", "Error: old string not found", "Error: old string not found"),
    ("small letters", "error: no such option", "error: no such option"),
    ("capitals", "ERROR: no", "ERROR: no"),
    ("tool", "Error executing tool search: no", "Error executing tool search: no"),
    ("query", "Error executing query: no", "Error executing query: no"),
    ("call", "Error calling search: no", "Error calling search: no"),
    ("invocation", "Error invoking search: no", "Error invoking search: no"),
    ("run", "Error running search: no", "Error running search: no"),
    (
        "CrewAI without a line",
        "I encountered an error while trying to use the tool. x",
        "I encountered an error while trying to use the tool. x",
    ),
    ("the last capital", "ZipError: x", "ZipError: x"),
    ("the last letter", "zlib.ZipError: x", "zlib.ZipError: x"),
    ("underscore", "_a.ZipError: x", "_a.ZipError: x"),
    (
        "Agents SDK",
        "An error occurred while running the tool. Error: x",
        "An error occurred while running the tool. Error: x",
    ),
    (
        "CrewAI",
        "\nI encountered an error while trying to use the tool. x",
        "\nI encountered an error while trying to use the tool. x",
    ),
    (
        "no details",
        "An error occurred while running the tool.",
        "An error occurred while running the tool.",
    ),
    ("type", "ValueError: x", "ValueError: x"),
    ("type of a module", "a.b.FooException: x", "a.b.FooException: x"),
    ("exception", "Exception: x", "Exception: x"),
    ("traceback", TRACEBACK, TRACEBACK),
    ("message on a line of its own", "Error:\nno", "Error:\nno"),
    ("non-ASCII", 'Error: "é"', 'Error: "é"'),
    ("member", {"error": "boom"}, "boom"),
    ("member among its like", {"code": 5, "error": "boom", "status": "failed"}, "boom"),
    ("member without a payload", {"data": None, "error": "boom", "items": []}, "boom"),
    ("not ok", {"ok": False, "error": "channel_not_found"}, "channel_not_found"),
    ("flag with a message", {"error": True, "message": "boom"}, "boom"),
    ("object", {"error": {"code": 429, "message": "slow down"}}, "429: slow down"),
    ("object with a message alone", {"error": {"message": "boom"}}, "boom"),
    ("object without a message", {"error": {"a": 1}}, '{"a":1}'),
    ("object with a type", {"error": {"type": "busy", "message": "wait"}}, "busy: wait"),
    ("object with a name", {"error": {"name": "Busy", "message": "wait"}}, "Busy: wait"),
    ("list", {"error": ["a", "b"]}, "a\nb"),
    ("lists in lists", {"error": [[[["boom"]]]]}, "boom"),
    ("texts in texts", {"error": nested("text", 4)}, "boom"),
    ("messages in messages", {"error": nested("message", 4)}, "boom"),
    ("too deep", {"error": nested("message", 5)}, '{"message":{"message":"boom"}}'),
    ("as much as is read", {"error": "x" * (16_384 - 12)}, "x" * (16_384 - 12)),
    ("MCP", {"content": [{"type": "text", "text": "boom"}], "isError": True}, "boom"),
    ("Messages", {"content": "boom", "is_error": True}, "boom"),
    ("MCP without words", {"content": [{"type": "image", "text": ""}], "isError": True}, "error"),
    ("MCP without content", {"isError": True}, "error"),
]

NO_ERRORS: list[tuple[str, object]] = [
    ("nothing", ""),
    ("null", None),
    ("number", 5),
    ("search hit", "Error handling in Go: a guide"),
    ("heading", "Errors: what they are"),
    ("test output", "1 failed, 2 passed"),
    ("log", "ERROR: a\nINFO: b\nERROR: c"),
    ("log of two lines", "ERROR: a\nINFO: b"),
    ("log of Python", "ERROR:root:a"),
    ("words before the name", "This is no Error: fine"),
    ("log with times", "ERROR 20:00:00 a"),
    ("denial", "Error: none"),
    ("error of nothing", "Error: "),
    ("rate", "error: 0"),
    ("quoted", "He wrote: ValueError: x"),
    ("source", "class FooError: ..."),
    ("no error", {"error": None, "data": 1}),
    ("empty error", {"error": "", "data": 1}),
    ("false error", {"error": False}),
    ("empty object", {"error": {}}),
    ("no errors", {"errors": []}),
    ("number of errors", {"error": 5}),
    ("error margin", {"error": 0.5, "value": 1}),
    ("payload", {"error": "partly", "data": [1]}),
    ("success", {"error": "deprecated", "success": True}),
    ("ok", {"error": "deprecated", "ok": True}),
    ("job", {"status": "error", "message": "the job failed"}),
    ("flag alone", {"error": True}),
    ("more than is read", {"error": "x" * (16_384 - 11)}),
    ("lists too deep", {"error": [[[[["boom"]]]]]}),
    ("object in lists too deep", {"error": [[[[{"message": "boom"}]]]]}),
    ("texts too deep", {"error": nested("text", 5)}),
    ("MCP", {"content": [{"type": "text", "text": "fine"}], "isError": False}),
    ("no word for it", {"error": "none"}),
    ("inside", {"a": {"error": "boom"}}),
    ("document", {"error": "boom" * 5000}),
    ("octets", b'"Error: x'),
    ("object with a set", {"error": "boom", "b": {1}}),
]


def text_of(value: object) -> bytes:
    text = canonical(value)
    assert text is not UNKNOWN
    return text


@pytest.mark.parametrize(
    ("value", "error"), [pytest.param(value, error, id=name) for name, value, error in ERRORS]
)
def test_a_result_that_is_an_error(value: object, error: str) -> None:
    assert error_in(text_of(value)) == error


@pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in NO_ERRORS])
def test_a_result_that_is_none(value: object) -> None:
    assert error_in(text_of(value)) is None


@pytest.mark.parametrize("text", [b"", b'"', b"{", b'"Error: ', b'{"error":', b'"Error: \xff"'])
def test_what_is_no_canonical_text_is_no_obstacle(text: bytes) -> None:
    assert error_in(text) in (None, '"Error: ', '"Error: \ufffd"')


def test_data_that_is_too_deep_is_no_error() -> None:
    text = b'{"error":' + b"[" * 5000 + b"]" * 5000 + b"}"

    assert error_in(text) is None


@pytest.mark.parametrize(
    ("value", "patterns", "error"),
    [
        ("mvn\nBUILD FAILURE in 5\nbye", ("BUILD FAILURE",), "BUILD FAILURE in 5"),
        ("BUILD FAILURE", ("x", "^BUILD"), "BUILD FAILURE"),
        ({"state": "broken"}, ('"state":"broken"',), '{"state":"broken"}'),
        ("\nBUILD FAILURE", ("BUILD",), "BUILD FAILURE"),
        ("a\nb", ("c",), None),
        ("npm\nnpm ERR! a\nb", ("^npm ERR!",), "npm ERR! a"),
        ("Error: x", ("c",), "Error: x"),
    ],
)
def test_patterns_of_ones_own(value: Any, patterns: tuple[str, ...], error: str | None) -> None:
    assert error_in(text_of(value), patterns) == error


def test_json_in_a_string_is_read() -> None:
    assert error_in(text_of(json.dumps({"error": "boom"}))) == "boom"
