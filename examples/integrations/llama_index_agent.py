"""A LlamaIndex agent that repeats itself is ended, and the conversation goes on."""

from __future__ import annotations

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI

from otel_loopguard import RunAborted, install, uninstall
from otel_loopguard.testing import model_server

install(mode="enforce")  # attaches the integration of each framework that is imported


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


async def main(url: str) -> None:
    memory = ChatMemoryBuffer.from_defaults()
    async with AsyncOpenAI(base_url=url, api_key="none") as client:
        for model in ("endless", "finish3"):  # the first one calls the tool for ever
            chat = OpenAILike(
                model=model,
                async_openai_client=client,
                is_chat_model=True,
                is_function_calling_model=True,
            )
            agent = FunctionAgent(tools=[search], llm=chat)
            try:
                print(await agent.run(user_msg="How is the weather in Paris?", memory=memory))
            except RunAborted as aborted:
                print(f"{aborted.report.rule} after {len(memory.get_all())} messages")


with model_server() as server:
    asyncio.run(main(server.url))
uninstall()  # an application leaves it in
