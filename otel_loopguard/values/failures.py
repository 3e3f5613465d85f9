"""How failures read: what equal errors have in common, and results that are errors in words."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias, cast

import msgspec

from otel_loopguard.values.volatile import Masking

_LONGEST: Final = 160
_READ: Final = 4096
"""Characters of an error that are looked at, from its beginning and from its end."""

_MASKING: Final = Masking()
_SPACE: Final = re.compile(r"\s+")
_DIGITS: Final = re.compile(
    r"""
    (?P<stays>
        (?<![0-9A-Za-z_])(?:"[^"\n]{1,200}"|'[^'\n]{1,200}'|`[^`\n]{1,200}`)(?![0-9A-Za-z_])
      | (?<![0-9A-Za-z_/.])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s:,;()"'<>]+       # a path
      | (?<![0-9A-Za-z_])(?:[Hh][Tt][Tt][Pp](?:/[0-9.]{1,4})?|[Ss]tatus|[Cc]ode|[Ee]rrno
          |[Ee]rror|ERROR|[Ee]xit(?:ed)?|[Rr]eturned|[Ss]ignal)
          (?:[ ](?:with|status|code|error)){0,3}[ :=\#(\[]{0,3}-?[0-9]{1,5}
          (?![0-9A-Za-z_])                                                  # a named status
      | (?:^|(?<=[:(\[=-])|(?<=[:=-][ ]))[1-5][0-9]{2}(?![0-9A-Za-z_.:,])    # HTTP's, in front
      | (?<![0-9.])[1-5][0-9]{2}(?=[ ](?:[A-Z][a-z]|response))              # and with its reason
      | (?<![0-9.])[0-9]{1,6}(?=[ ](?:error|fail|pass|problem|skipped|test|warning)) # tests
      | (?:errors|failed|failures|passed|skipped)[=:][ ]?[0-9]{1,6}
      | (?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,5}){2,3}(?![0-9])                 # an address, a version
    )
    | (?<![0-9A-Za-z_])(?=[a-f]{0,64}[0-9])[0-9a-f]{7,64}(?![0-9A-Za-z_])
    | (?P<name>[A-Za-z_][0-9A-Za-z_]*)
    | [0-9]+
    """,
    re.VERBOSE,
)
_TYPE: Final = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]{0,60}\.){0,8}[A-Z][A-Za-z0-9_]{0,60}(?:Error|Exception)(?![A-Za-z0-9_])"
)
_EMPTY: Final = re.compile(
    r"""
      \W*$                                                   # rules, carets
    | \s*at\ .{1,300}                                        # a frame of JavaScript, Java
    | \s*\.\.\.\ [0-9]+\ more | \s*File\ "                   # of Java, of Python
    | \s*goroutine\ [0-9]+ | \s*Traceback\ \(most\ recent
    | \s*exit\ (?:status|code)\ -?[0-9]+\W*$
    | \s*(?:</?[A-Za-z_:-]{1,40}>\s*){1,4}$                  # the end of a wrapping element
    | \s*(?:For\ further\ information\ visit|\[notice\])
    | \s*(?:Please\ )?[Ff]ix\ (?:your\ mistakes|the\ errors?)\b  # what frameworks add for the model
    | \s*(?:Moving\ on\ then|Tool\ .{1,80}\ accepts\ these\ inputs)
    """,
    re.VERBOSE,
)


def error_signature(error: str) -> str:
    """Return what equal failures have in common: the type and the last line that says something.

    Volatile parts are masked, and digits become `#`, but not those of quoted words, paths, names,
    addresses, exit codes, HTTP statuses and counts of tests. At most 160 characters.
    """
    line = last_line(error)
    found = _TYPE.match(error.lstrip())
    kind = found[0] if found else ""
    told = line if not kind or kind in line else f"{kind}: {line}"
    masked = _MASKING.masked_result(told[:_READ].encode(errors="surrogatepass"))
    shown = masked.decode(errors="surrogatepass")
    return _SPACE.sub(" ", _DIGITS.sub(_without_number, shown)).strip()[:_LONGEST].rstrip()


def last_line(error: str) -> str:
    """Return the last line that says something, as far as it is read."""
    lines = error[-_READ:].splitlines() if len(error) > _READ else error.splitlines()
    if len(lines) == 1:
        return error[:_READ]
    for line in reversed(lines):
        if not _EMPTY.match(line):
            return line
    return error[:_READ]


def _without_number(match: re.Match[str]) -> str:
    return match[0] if match["stays"] or match["name"] else "#"


_Members: TypeAlias = dict[str, Any]

_BEGINNINGS: Final = (
    b'"Error: ',
    b'"error: ',
    b'"ERROR: ',
    b'"Error:\\n',
    b'"Error calling ',
    b'"Error executing ',
    b'"Error invoking ',
    b'"Error running ',
    b'"An error occurred while ',
    b'"I encountered an error while trying to use the tool',
    b'"\\nI encountered an error while trying to use the tool',
    b'"Exception: ',
    b'"Traceback (most recent call last)',
)
_FIRST: Final = frozenset(beginning[:6] for beginning in _BEGINNINGS)
"""Looked up, for that is faster than to compare with each."""
_INITIALS: Final = frozenset(bytes([c]) for c in (*b"\\_", *range(65, 91), *range(97, 123)))
_TYPED: Final = re.compile(
    rb'"(?:[A-Za-z_][A-Za-z0-9_]{0,60}\.){0,8}[A-Z][A-Za-z0-9_]{0,60}(?:Error|Exception): '
)
_HEAD: Final = 640
"""Bytes at the beginning of a result in which an error names itself."""
_NONE: Final = frozenset(("", "-", "0", "false", "n/a", "nil", "none", "null", "ok"))
_LOG: Final = re.compile(
    r"^(?:\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b)", re.MULTILINE | re.IGNORECASE
)
_LARGEST: Final = 16_384
"""Bytes of a JSON object that is read; a larger one is a document."""
_ABOUT: Final = frozenset(
    {
        *("code", "error", "errors", "error_code", "error_description", "errorcode", "error_type"),
        *("message", "msg", "detail", "details", "reason", "hint", "description", "type", "title"),
        *("status", "status_code", "statuscode", "http_status", "success", "ok", "retryable"),
        *("request_id", "requestid", "timestamp", "path", "stack", "stacktrace", "traceback"),
        *("documentation_url", "jsonrpc", "id", "tool", "tool_name", "exception", "retry_after"),
        *("iserror", "is_error"),
    }
)
"""Keys, in lower case, that a report of an error has beside the error; any other is a payload."""


def error_in(text: bytes, patterns: tuple[str, ...] = ()) -> str | None:
    """Return the error that a canonical result is, or `None` if it does not read as a failure.

    Args:
        text: the canonical text of a result.
        patterns: regular expressions, `^` and `$` of which match at every line; a result that one
            of them is found in is a failure, and the line of the match its error.

    """
    if patterns:
        shown = _shown(text)
        for pattern in patterns:
            match = re.search(pattern, shown, re.MULTILINE)
            if match:
                return _line_of(shown, match.start())
    if text[1:2] in _INITIALS:
        return _spoken(_shown(text)) if _begins_as_error(text) else None
    return _reported(text) if text[:2] == b'{"' and b'rror":' in text else None


def _begins_as_error(text: bytes) -> bool:
    """Say whether a text begins as errors do; an error names itself before its first colon."""
    if text[:6] in _FIRST and text.startswith(_BEGINNINGS):
        return True
    colon = text.find(b": ", 0, _HEAD)
    named = text[colon - 5 : colon] == b"Error" or text[colon - 9 : colon] == b"Exception"
    return named and _TYPED.match(text) is not None


def _shown(text: bytes) -> str:
    """Return the text of a string, or the canonical text of any other value."""
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text.decode(errors="replace")


def _line_of(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position) + 1
    return text[begin:].partition("\n")[0]


def _spoken(text: str) -> str | None:
    """Return a text that begins as an error does, unless it denies one or is a log."""
    head = text[:_READ]
    _, colon, said = head.partition(":")
    if (colon and said.strip().rstrip(".").lower() in _NONE) or len(_LOG.findall(head)) > 1:
        return None
    return text


def _reported(text: bytes) -> str | None:
    """Return the error that an object reports, if it reports nothing else."""
    try:
        members = msgspec.json.decode(text if len(text) <= _LARGEST else b"{}", type=_Members)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    error = members.get("error")
    if members.get("isError") is True or members.get("is_error") is True:
        return _texts(members.get("content", error)) or "error"
    if members.get("success") is True or members.get("ok") is True:
        return None
    if any(item for key, item in members.items() if key.lower() not in _ABOUT):
        return None
    told = _texts(members.get("message") if error is True else error)
    return told if told.strip().lower() not in _NONE else None


def _written(members: _Members) -> str:
    try:
        return msgspec.json.encode(members).decode()
    except RecursionError:  # pragma: no cover -- only with some versions of msgspec
        return ""


def _texts(content: object, layers: int = 4) -> str:
    """Return the words of a message, of the parts of one, or of an object with a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and layers:
        parts = cast("list[object]", content)
        return "\n".join(filter(None, (_texts(part, layers - 1) for part in parts)))
    if not isinstance(content, dict) or not layers:
        return ""
    members = cast("_Members", content)
    if "text" in members:
        return _texts(members["text"], layers - 1)
    kind = members.get("code", members.get("type", members.get("name", "")))
    message = _texts(members.get("message", ""), layers - 1)
    if not message:
        return _written(members) if members else ""
    return f"{kind}: {message}" if kind else message
