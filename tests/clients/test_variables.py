"""Clients that are pointed at the scripted model by nothing but variables of the environment."""

from __future__ import annotations

import json
from collections.abc import Generator

import anthropic
import openai
import pytest
from google import genai

from otel_loopguard.testing import ModelServer, model_server
from otel_loopguard.testing.scripts import NO_TOOLS
from tests.clients import _javascript


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[ModelServer]:
    """Serve a model whose address is in the variables that `otel-loopguard fake-model` names."""
    with model_server() as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.root)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", served.root)
        for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
            monkeypatch.setenv(f"{name}_API_KEY", "none")
        yield served


def test_clients_for_python_read_the_variables(server: ModelServer) -> None:
    with openai.OpenAI() as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Go."}])
    with anthropic.Anthropic() as client:
        client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "Go."}]
        )
    with genai.Client() as client:
        client.models.generate_content(model="m", contents="Go.")

    apis = ["openai-chat", "anthropic-messages", "gemini"]
    assert [request.api for request in server.requests] == apis


def test_clients_for_javascript_read_the_variables(server: ModelServer) -> None:
    answers = json.loads(_javascript.run("variables.mjs"))

    assert len(answers) == 5
    assert set(answers.values()) == {NO_TOOLS.text}
    assert [request.api for request in server.requests] == [
        *("openai-chat", "anthropic-messages", "gemini"),
        *("openai-responses", "anthropic-messages"),
    ]
