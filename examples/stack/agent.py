"""An agent of the OpenAI Agents SDK that knows nothing of tracing, nor of a guard.

    opentelemetry-instrument python agent.py --name scout --model endless --runs 3

The model is whatever `OPENAI_BASE_URL` speaks for; `otel-loopguard fake-model` plays one that asks
for the same tool for ever.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

KEY = os.environ.get("OPENAI_API_KEY", "none")  # a scripted model wants none


@function_tool
def search(query: str) -> str:
    """Search for a text."""
    return f"nothing found for {query!r}"


@function_tool
def lookup(key: str) -> str:
    """Look a place up."""
    return f"{key} is in France"


async def answer(name: str, model: str, turns: int) -> str:
    async with AsyncOpenAI(api_key=KEY, max_retries=0) as client:
        agent = Agent(name, tools=[search, lookup], model=OpenAIResponsesModel(model, client))
        configuration = RunConfig(workflow_name=name)
        done = await Runner.run(
            agent, "How is the weather in Paris?", max_turns=turns, run_config=configuration
        )
        return str(done.final_output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="scout")
    parser.add_argument("--model", default="endless")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two runs")
    parser.add_argument("--turns", type=int, default=1000, help="the SDK's own limit")
    options = parser.parse_args()
    for number in range(options.runs):
        if number:
            time.sleep(options.pause)
        try:
            print(asyncio.run(answer(options.name, options.model, options.turns)), flush=True)
        except Exception as error:  # noqa: BLE001 -- the next run is to come all the same
            print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
