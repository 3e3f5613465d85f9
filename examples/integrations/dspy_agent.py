"""A DSPy agent that repeats itself is ended, and the conversation goes on."""

from __future__ import annotations

import os

import dspy
from dspy.predict import ReActV2

from otel_loopguard import RunAborted, install, uninstall
from otel_loopguard.testing import model_server

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"  # else DSPy asks what models there are
install(mode="enforce")  # attaches the integration of each framework that is imported


class Scripted(dspy.LM):
    """The scripted model, of which DSPy does not know that it calls functions."""

    supports_function_calling = True


class PlainAnswers(dspy.ChatAdapter):
    """Takes what the scripted model says for its answer."""

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, object]:  # noqa: ARG002
        call = {"name": "submit", "args": {"answer": completion}}
        return {"tool_calls": dspy.ToolCalls.from_dict_list([call]), "next_thought": None}


def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


agent = ReActV2("question -> answer", tools=[search])
history = dspy.History(messages=[])

with model_server() as server:
    for model in ("endless", "finish3"):  # the first one calls the tool for ever
        chat = Scripted(f"openai/{model}", api_base=server.url, api_key="none", cache=False)
        adapter = PlainAnswers(use_native_function_calling=True)
        with dspy.context(lm=chat, adapter=adapter):
            try:
                print(agent(question="How is the weather in Paris?", history=history).answer)
            except RunAborted as aborted:
                print(f"{aborted.report.rule} after {len(history.messages)} turns")

uninstall()  # an application leaves it in
