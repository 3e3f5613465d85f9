// Google's own client for Gemini.

import { ApiError, GoogleGenAI } from "@google/genai";

import { DESCRIPTION, NAMES, QUESTION, RESULT, SCHEMA } from "./tools.mjs";

const functionDeclarations = NAMES.map((name) => ({
  name,
  description: DESCRIPTION,
  parametersJsonSchema: SCHEMA,
}));

export const isOwn = (error) => error instanceof ApiError;

export async function* turns(root, model, stream) {
  const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: root } });
  const contents = [{ role: "user", parts: [{ text: QUESTION }] }];
  for (;;) {
    const request = { model, contents, config: { tools: [{ functionDeclarations }] } };
    const answers = stream ? [] : [await client.models.generateContent(request)];
    if (stream) {
      for await (const answer of await client.models.generateContentStream(request)) answers.push(answer);
    }
    const parts = answers.flatMap((answer) => answer.candidates?.[0]?.content?.parts ?? []);
    const calls = parts.flatMap((part) => part.functionCall ?? []);
    const last = answers.at(-1);
    const usage = last.usageMetadata;
    yield {
      text: parts.map((part) => part.text ?? "").join(""),
      calls: calls.map((call) => ({ id: call.id, name: call.name, arguments: call.args })),
      finish: last.candidates?.[0]?.finishReason ?? last.promptFeedback?.blockReason,
      tokens: [usage.promptTokenCount, usage.cachedContentTokenCount ?? 0, usage.candidatesTokenCount],
    };
    if (calls.length === 0) return;
    contents.push({ role: "model", parts });
    // Without ids, as many do: the name and the order tell which call it was.
    contents.push({
      role: "user",
      parts: calls.map(({ name }) => ({ functionResponse: { name, response: { output: RESULT } } })),
    });
  }
}
