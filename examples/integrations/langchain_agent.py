"""A LangChain agent that repeats itself is ended, and the conversation goes on."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from otel_loopguard import RunAborted, install, uninstall
from otel_loopguard.testing import model_server

install(mode="enforce")  # attaches the integration of each framework that is imported


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


memory = InMemorySaver()
thread = {"configurable": {"thread_id": "weather"}}

with model_server() as server:
    for model in ("endless", "finish3"):  # the first one calls the tool for ever
        chat = ChatOpenAI(model=model, base_url=server.url, api_key="none")
        agent = create_agent(chat, [search], checkpointer=memory)
        question = {"role": "user", "content": "How is the weather in Paris?"}
        try:
            state = agent.invoke({"messages": [question]}, thread)
            print(state["messages"][-1].content)
        except RunAborted as aborted:
            said = agent.get_state(thread).values["messages"]
            print(f"{aborted.report.rule} after {len(said)} messages")

uninstall()  # an application leaves it in
