// Anthropic's own client, by its Messages.

import Anthropic from "@anthropic-ai/sdk";

import { DESCRIPTION, NAMES, QUESTION, RESULT, SCHEMA } from "./tools.mjs";

const tools = NAMES.map((name) => ({ name, description: DESCRIPTION, input_schema: SCHEMA }));

export const isOwn = (error) => error instanceof Anthropic.AnthropicError;

export async function* turns(root, model, stream) {
  const client = new Anthropic({ baseURL: root, apiKey: "none" });
  const messages = [{ role: "user", content: QUESTION }];
  for (;;) {
    const request = { model, max_tokens: 1000, messages, tools };
    const message = stream
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    const calls = message.content.filter((block) => block.type === "tool_use");
    const cached = message.usage.cache_read_input_tokens ?? 0;
    yield {
      text: message.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
      calls: calls.map((call) => ({ id: call.id, name: call.name, arguments: call.input })),
      finish: message.stop_reason,
      tokens: [message.usage.input_tokens + cached, cached, message.usage.output_tokens],
    };
    if (calls.length === 0) return;
    messages.push({ role: "assistant", content: message.content });
    messages.push({
      role: "user",
      content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: RESULT })),
    });
  }
}
