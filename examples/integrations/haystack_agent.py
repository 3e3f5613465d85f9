"""A Haystack agent that repeats itself is ended, and the conversation goes on."""

from __future__ import annotations

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret

from otel_loopguard import install, uninstall
from otel_loopguard.integrations.haystack import RUN_ABORTED
from otel_loopguard.testing import model_server

install(mode="enforce")  # attaches the integration of each framework that is imported


@tool
def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


messages: list[ChatMessage] = []

with model_server() as server:
    for model in ("endless", "finish3"):  # the first one calls the tool for ever
        key = Secret.from_token("none")
        chat = OpenAIChatGenerator(model=model, api_base_url=server.url, api_key=key)
        messages.append(ChatMessage.from_user("How is the weather in Paris?"))
        with_tool = Agent(chat_generator=chat, tools=[search])
        ended = with_tool.run(messages)
        messages = ended["messages"]
        if ended["exit_reason"] == RUN_ABORTED:
            print(f"stopped after {len(messages)} messages")
        else:
            print(ended["last_message"].text)
        with_tool.close()

uninstall()  # an application leaves it in
