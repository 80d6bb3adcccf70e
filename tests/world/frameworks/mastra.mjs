// Mastra's own tool loop, with the proxy's address as the base URL.
// node mastra.mjs URL [stream]
import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const [url, mode] = process.argv.slice(2);
const openai = createOpenAI({ apiKey: "k", baseURL: `${url}/v1` });
const lines = Array.from({ length: 150 }, (_, n) => `line ${n}: value ${n * 7919}`).join("\n");
const agent = new Agent({
  id: "reader",
  name: "reader",
  instructions: "You read files.",
  model: openai.chat("gpt-5.1"),
  tools: {
    read_file: createTool({
      id: "read_file",
      description: "Read a file.",
      inputSchema: z.object({ path: z.string() }),
      execute: async (given) => `${given.path ?? given.context?.path}\n${lines}`,
    }),
  },
});
const prompt = "Read every file. Never delete one.";
const run = mode === "stream" ? await agent.stream(prompt, { maxSteps: 50 }) : await agent.generate(prompt, { maxSteps: 50 });
console.log(await run.text);
