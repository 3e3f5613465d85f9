// Asks once with every client that is told the address by nothing but variables, and prints as JSON
// what each answered.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { generateText } from "ai";
import OpenAI from "openai";

import { QUESTION } from "./tools.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // they go where the answer goes

const model = "finish3";
const messages = [{ role: "user", content: QUESTION }];
const asked = { maxOutputTokens: 1000, prompt: QUESTION };

const chat = await new OpenAI().chat.completions.create({ model, messages });
const message = await new Anthropic().messages.create({ model, max_tokens: 1000, messages });
const answer = await new GoogleGenAI({}).models.generateContent({ model, contents: QUESTION });
process.env.ANTHROPIC_BASE_URL += "/v1"; // the Vercel AI SDK adds no version
const answers = {
  openai: chat.choices[0].message.content,
  "@anthropic-ai/sdk": message.content[0].text,
  "@google/genai": answer.text,
  "@ai-sdk/openai": (await generateText({ ...asked, model: createOpenAI()(model) })).text,
  "@ai-sdk/anthropic": (await generateText({ ...asked, model: createAnthropic()(model) })).text,
};
process.stdout.write(JSON.stringify(answers));
