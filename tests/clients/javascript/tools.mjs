// The tools that every client offers.

export const NAMES = ["search", "lookup"];
export const SCHEMA = {
  type: "object",
  properties: { query: { type: "string" } },
  required: ["query"],
  additionalProperties: false,
};
export const DESCRIPTION = "Looks something up.";
export const QUESTION = "Go.";
export const RESULT = "ok";
