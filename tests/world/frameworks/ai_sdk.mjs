// The AI SDK's own tool loop, with the proxy's address as the base URL.
// node ai_sdk.mjs URL [stream]
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [url, mode] = process.argv.slice(2);
const openai = createOpenAI({ apiKey: "k", baseURL: `${url}/v1` });
const lines = Array.from({ length: 150 }, (_, n) => `line ${n}: value ${n * 7919}`).join("\n");
const options = {
  model: openai.chat("gpt-5.1"),
  prompt: "Read every file. Never delete one.",
  maxRetries: 0,
  stopWhen: stepCountIs(50),
  tools: {
    read_file: tool({
      description: "Read a file.",
      inputSchema: z.object({ path: z.string() }),
      execute: async ({ path }) => `${path}\n${lines}`,
    }),
  },
};
if (mode === "stream") {
  console.log(await streamText(options).text);
} else {
  console.log((await generateText(options)).text);
}
