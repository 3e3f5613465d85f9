"""What the server takes note of in a request in Gemini's format.

Clients write the names of fields as `functionCall` or as `function_call`: both are read, as the
API does. Many send no ids, so calls and results are also matched by their names and their order;
which call it was is then known by its signature, which clients have to send back as it is.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from otel_loopguard.testing.scripts import OfferedTool
from otel_loopguard.testing.wire import Mention, ParsedRequest, RequestError, decode_request

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = "generateContent"
_STREAMED = "streamGenerateContent"


class _Declaration(msgspec.Struct):
    name: str
    parameters: dict[str, object] | None = None
    schema: dict[str, object] | None = msgspec.field(default=None, name="parametersJsonSchema")
    schema_in_snake_case: dict[str, object] | None = msgspec.field(
        default=None, name="parameters_json_schema"
    )


class _Tool(msgspec.Struct):
    declared: list[_Declaration] | None = msgspec.field(default=None, name="functionDeclarations")
    declared_in_snake_case: list[_Declaration] | None = msgspec.field(
        default=None, name="function_declarations"
    )


class _Function(msgspec.Struct):
    """A call, or the result of one."""

    name: str
    id: str | None = None


class _Part(msgspec.Struct):
    signature: str | None = msgspec.field(default=None, name="thoughtSignature")
    signature_in_snake_case: str | None = msgspec.field(default=None, name="thought_signature")
    call: _Function | None = msgspec.field(default=None, name="functionCall")
    call_in_snake_case: _Function | None = msgspec.field(default=None, name="function_call")
    result: _Function | None = msgspec.field(default=None, name="functionResponse")
    result_in_snake_case: _Function | None = msgspec.field(default=None, name="function_response")


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _Body(msgspec.Struct):
    contents: list[_Content]
    tools: list[_Tool] | None = None


def read_request(body: bytes, address: Mapping[str, str]) -> ParsedRequest:
    """Read a request; raises `RequestError` for a body that is none and for another method."""
    method = address["method"]
    if method not in (_AT_ONCE, _STREAMED):
        raise RequestError(
            f"the scripted model has no method {method!r}; expected {_AT_ONCE!r} or {_STREAMED!r}"
        )
    if method == _STREAMED and address.get("alt") != "sse":
        raise RequestError(
            f"the scripted model streams events only: ask for '{_STREAMED}?alt=sse', as Google's "
            "clients do"
        )
    request = decode_request(body, _Body)
    return ParsedRequest(
        model=address["model"],
        stream=method == _STREAMED,
        tools=tuple(_offered_tools(request.tools or ())),
        history=tuple(_history(part for content in request.contents for part in content.parts)),
    )


def _offered_tools(tools: Sequence[_Tool]) -> Iterator[OfferedTool]:
    for tool in tools:
        for each in tool.declared or tool.declared_in_snake_case or ():
            schema = each.schema or each.schema_in_snake_case or _json_schema(each.parameters or {})
            yield OfferedTool(name=each.name, parameters=schema)


def _json_schema(schema: Mapping[str, object]) -> dict[str, object]:
    """Return Google's own form of a schema, which says `STRING`, as JSON Schema."""
    return {keyword: _at_keyword(keyword, value) for keyword, value in schema.items()}


def _at_keyword(keyword: str, value: object) -> object:
    match keyword, value:
        case "type", str():
            return value.lower()
        case "properties", dict():
            named = cast("dict[str, object]", value)
            return {name: _below(each) for name, each in named.items()}
        case (("anyOf" | "items"), _):
            return _below(value)
        case _:
            return value


def _below(value: object) -> object:
    if isinstance(value, dict):
        return _json_schema(cast("dict[str, object]", value))
    if isinstance(value, list):
        return [_below(each) for each in cast("list[object]", value)]
    return value


def signature_of(call_id: str) -> str:
    """Return what stands beside a call in place of the signature of a thought."""
    return urlsafe_b64encode(call_id.encode()).decode()


def _signed(part: _Part) -> str | None:
    """Return the id that was made a signature; `None` where there is none, or another's."""
    signature = part.signature or part.signature_in_snake_case or ""
    try:
        return urlsafe_b64decode(signature.replace("+", "-").replace("/", "_")).decode() or None
    except ValueError:
        return None


class _Unanswered(NamedTuple):
    name: str
    sent_id: str | None
    known_id: str


def _history(parts: Iterator[_Part]) -> Iterator[Mention]:
    """Give each call without an id one of its own, and each result that of the call it answers."""
    unanswered: list[_Unanswered] = []
    made = 0
    for part in parts:
        if call := part.call or part.call_in_snake_case:
            made += 1
            known = call.id or _signed(part) or f"{call.name} (call {made}, without an id)"
            unanswered.append(_Unanswered(call.name, call.id, known))
            yield Mention(kind="call", call_id=known)
        elif result := part.result or part.result_in_snake_case:
            answered = _answered(result, unanswered)
            if answered is not None:
                unanswered.remove(answered)
            known = result.id or f"{result.name} (without an id)"
            yield Mention(kind="result", call_id=answered.known_id if answered else known)


def _answered(result: _Function, unanswered: Sequence[_Unanswered]) -> _Unanswered | None:
    same = (call for call in unanswered if result.id is not None and call.sent_id == result.id)
    # Some clients keep the ids of calls and send none with the results, or the other way round.
    alike = (
        call
        for call in unanswered
        if call.name == result.name and (result.id is None or call.sent_id is None)
    )
    return next(same, None) or next(alike, None)
