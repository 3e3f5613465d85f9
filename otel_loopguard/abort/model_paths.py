"""What a model request looks like: by its path, and by more where paths look alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

MODEL_PATH = re.compile(
    r"/completions$"
    r"|/(v\d+\w*|openai)/(responses|(?P<messages>messages))$"
    r"|:(stream)?generateContent$"
    r"|/api/(?P<ollama>chat|generate)$"
    r"|/model/(?!.*(embed|rerank)).+/(converse|invoke)(-stream|-with-response-stream)?$",
    re.IGNORECASE,
)
"""Paths of model requests: OpenAI and its many likes, Anthropic, Gemini, Ollama, Bedrock.

Tools post to paths that look alike, such as the messages of a chat's channel: those of Anthropic
are told by their header, those of Ollama by its port. Models of Bedrock that embed are asked at the
path of all others; and a model's name may be an ARN, which has slashes.
"""

_OLLAMA_PORT = 11434

_SDK_PATH = re.compile(r"^/?(responses|v1/messages)$")
"""What the clients of `openai` and `anthropic` call them besides, below their base address."""


def is_model_request(
    method: str, address: object, headers: Iterable[str], port: int | None = None
) -> bool:
    """Tell a model request by method, address (a text, or what makes one) and names of headers.

    `port` is that of the connection, for an address that is only a path.
    """
    if method.upper() != "POST":
        return False
    parts = urlsplit(str(address))
    found = MODEL_PATH.search(unquote(parts.path))
    if found is None:
        return False
    if found["messages"]:
        return any(name.lower() == "anthropic-version" for name in headers)
    return not found["ollama"] or (parts.port or port) == _OLLAMA_PORT


def is_sdk_model_request(method: str, path: str) -> bool:
    """Tell a model request of the `openai` or `anthropic` client, by its path below their base."""
    if method.upper() != "POST":
        return False
    bare = path.partition("?")[0]
    return MODEL_PATH.search(bare) is not None or _SDK_PATH.search(bare) is not None
