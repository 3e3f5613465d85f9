"""Google's own client for Python, for Gemini."""

from __future__ import annotations

from collections.abc import Iterator

from google import genai
from google.genai import errors, types

from tests.clients._seen import (
    DESCRIPTION,
    NAMES,
    QUESTION,
    RESULT,
    SCHEMA,
    Call,
    Turn,
    joined,
)

ERRORS = (errors.APIError,)
TOOLS = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name=name, description=DESCRIPTION, parameters_json_schema=SCHEMA)
        for name in NAMES
    ]
)


def opened(root: str) -> genai.Client:
    """Return a client of the server at this address; closes with its context."""
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=root))


def turns(client: genai.Client, model: str, *, stream: bool) -> Iterator[Turn]:
    """Yield each turn, and answer its calls after that."""
    contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    while True:
        answers = _asked(client, model, contents, stream=stream)
        parts = [part for answer in answers for part in _parts(answer)]
        turn = _turn(answers[-1], parts)
        yield turn
        if not turn.calls:
            return
        contents.append(types.Content(role="model", parts=parts))
        contents.append(types.Content(role="user", parts=[_result(call) for call in turn.calls]))


def _asked(
    client: genai.Client, model: str, contents: list[types.Content], *, stream: bool
) -> list[types.GenerateContentResponse]:
    config = types.GenerateContentConfig(tools=[TOOLS])
    if not stream:
        return [client.models.generate_content(model=model, contents=contents, config=config)]
    return list(
        client.models.generate_content_stream(model=model, contents=contents, config=config)
    )


def _parts(answer: types.GenerateContentResponse) -> list[types.Part]:
    (candidate,) = answer.candidates or ()
    return (candidate.content.parts if candidate.content else None) or []


def _turn(last: types.GenerateContentResponse, parts: list[types.Part]) -> Turn:
    (candidate,) = last.candidates or ()
    usage = last.usage_metadata
    assert usage is not None
    assert usage.prompt_token_count is not None
    assert usage.candidates_token_count is not None
    calls = [part.function_call for part in parts if part.function_call]
    return Turn(
        text=joined(part.text for part in parts),
        calls=tuple(
            Call(id=call.id or "", name=call.name or "", arguments=call.args) for call in calls
        ),
        finish=candidate.finish_reason.value if candidate.finish_reason else None,
        tokens=(
            usage.prompt_token_count,
            usage.cached_content_token_count or 0,
            usage.candidates_token_count,
        ),
    )


def _result(call: Call) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=call.name, response={"output": RESULT})
    return types.Part(function_response=response)
