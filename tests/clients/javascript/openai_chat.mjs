// OpenAI's own client, by its Chat Completions.

import OpenAI from "openai";

import { DESCRIPTION, NAMES, QUESTION, RESULT, SCHEMA } from "./tools.mjs";

const tools = NAMES.map((name) => ({
  type: "function",
  function: { name, description: DESCRIPTION, parameters: SCHEMA },
}));

export const isOwn = (error) => error instanceof OpenAI.OpenAIError;

export async function* turns(root, model, stream) {
  const client = new OpenAI({ baseURL: `${root}/v1`, apiKey: "none" });
  const messages = [{ role: "user", content: QUESTION }];
  for (;;) {
    const request = { model, messages, tools };
    const completion = stream
      ? await client.chat.completions
          .stream({ ...request, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await client.chat.completions.create(request);
    const [{ message, finish_reason }] = completion.choices;
    const calls = message.tool_calls ?? [];
    const usage = completion.usage;
    yield {
      text: message.content ?? message.refusal ?? "",
      calls: calls.map((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments })),
      finish: finish_reason,
      tokens: usage ? [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens] : null,
    };
    if (calls.length === 0) return;
    messages.push(message);
    for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: RESULT });
  }
}
