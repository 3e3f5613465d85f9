"""A hand-written agent on the `openai` client: the user's own span, and no word of a guard."""

from __future__ import annotations

import json
import sys
from typing import Any

from openai import OpenAI
from opentelemetry import trace

client = OpenAI(base_url=sys.argv[1], api_key="key", max_retries=0)
tools: Any = [
    {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
]
messages: list[Any] = [{"role": "user", "content": "Find it."}]
calls = 0
with trace.get_tracer("app").start_as_current_span("answer"):
    try:
        while True:
            answer = client.chat.completions.create(model="endless", messages=messages, tools=tools)
            messages.append(answer.choices[0].message)
            for call in answer.choices[0].message.tool_calls or ():
                calls += 1
                result = json.dumps("nothing")
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    except Exception as error:  # noqa: BLE001 -- whatever the caller of an agent gets
        sys.stdout.write(f"{type(error).__name__} {calls}\n")
