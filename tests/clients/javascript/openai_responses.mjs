// OpenAI's own client, by its Responses.

import OpenAI from "openai";

import { DESCRIPTION, NAMES, QUESTION, RESULT, SCHEMA } from "./tools.mjs";

const tools = NAMES.map((name) => ({
  type: "function",
  name,
  description: DESCRIPTION,
  parameters: SCHEMA,
  strict: true,
}));

export const isOwn = (error) => error instanceof OpenAI.OpenAIError;

export async function* turns(root, model, stream) {
  const client = new OpenAI({ baseURL: `${root}/v1`, apiKey: "none" });
  const input = [{ role: "user", content: QUESTION }];
  for (;;) {
    const request = { model, input, tools, store: false };
    const response = stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    const calls = response.output.filter((item) => item.type === "function_call");
    const usage = response.usage;
    yield {
      text: response.output_text ?? "",
      calls: calls.map((call) => ({ id: call.call_id, name: call.name, arguments: call.arguments })),
      finish: response.incomplete_details?.reason ?? response.status,
      tokens: usage ? [usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens] : null,
    };
    if (calls.length === 0) return;
    for (const { type, call_id, name, arguments: given } of calls) {
      input.push({ type, call_id, name, arguments: given });
      input.push({ type: "function_call_output", call_id, output: RESULT });
    }
  }
}
