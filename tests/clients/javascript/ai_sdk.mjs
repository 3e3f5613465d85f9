// The Vercel AI SDK, with its provider for one of the APIs, one step of its own loop at a time.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { AISDKError, generateText, streamText, tool } from "ai";
import { z } from "zod";

import { DESCRIPTION, NAMES, QUESTION, RESULT } from "./tools.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // they go where the answer goes

const execute = async () => RESULT;
const tools = Object.fromEntries(
  NAMES.map((name) => [
    name,
    tool({ description: DESCRIPTION, inputSchema: z.strictObject({ query: z.string() }), execute }),
  ]),
);
const MODELS = {
  "openai-chat": (root, model) => createOpenAI({ baseURL: `${root}/v1`, apiKey: "none" }).chat(model),
  "openai-responses": (root, model) => createOpenAI({ baseURL: `${root}/v1`, apiKey: "none" }).responses(model),
  "anthropic-messages": (root, model) => createAnthropic({ baseURL: `${root}/v1`, apiKey: "none" })(model),
  gemini: (root, model) => createGoogleGenerativeAI({ baseURL: `${root}/v1beta`, apiKey: "none" })(model),
};

export const isOwn = (error) => AISDKError.isInstance(error);

export async function* turns(root, model, stream, api) {
  const messages = [{ role: "user", content: QUESTION }];
  for (;;) {
    const request = { model: MODELS[api](root, model), messages, tools, maxOutputTokens: 1000 };
    const step = stream ? await streamed(request) : await generateText(request);
    yield {
      text: step.text,
      calls: step.toolCalls.map((call) => ({
        id: call.toolCallId,
        name: call.toolName,
        arguments: call.input,
        failure: call.invalid ? call.error.name : null,
      })),
      finish: step.finishReason,
      tokens: [step.usage.inputTokens, step.usage.inputTokenDetails.cacheReadTokens ?? 0, step.usage.outputTokens],
    };
    if (step.toolCalls.length === 0) return;
    messages.push(...step.response.messages);
  }
}

async function streamed(request) {
  const result = streamText({ ...request, onError: () => {} });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
  }
  const names = ["text", "toolCalls", "finishReason", "usage", "response"];
  const values = await Promise.all(names.map((name) => result[name]));
  return Object.fromEntries(names.map((name, index) => [name, values[index]]));
}
