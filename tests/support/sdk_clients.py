"""The providers' own SDKs behind one small face: start, send, give the results back.

Knows how each SDK is pointed at a URL, and how its objects go back into the next request.
Asserts nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

import pytest

NAMES = ("openai", "anthropic", "google.genai", "boto3")
if not os.environ.get("CI"):  # there the extra "sdks" has to be installed
    for name in NAMES:
        pytest.importorskip(name, reason="pip install 'trimtab[sdks]'")

import anthropic  # noqa: E402
import boto3  # noqa: E402
import openai  # noqa: E402
from botocore.config import Config  # noqa: E402
from google import genai  # noqa: E402
from google.genai import types  # noqa: E402

import trimtab  # noqa: E402

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PROMPT = "What do the files say?"


@dataclass
class SpokenAnswer:
    """One answer: its text, its calls as (id, name, arguments), tokens of its prompt, those read
    from a cache, and those of its output."""

    text: str
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    prompt: int = 0
    cached: int = 0
    output: int = 0


class Chat:
    """OpenAI's SDK, Chat Completions."""

    format = "openai-chat"

    def __init__(self, url: str, model: str = "gpt-5.1") -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
        self.model = model
        self.messages: list[Any] = [{"role": "system", "content": "Read files."}]

    def ask(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def send(self, stream: bool) -> SpokenAnswer:
        tool = {"name": "read", "description": "Read a file", "parameters": SCHEMA}
        asked: dict[str, Any] = {
            "model": self.model, "messages": self.messages,
            "tools": [{"type": "function", "function": tool}], "max_completion_tokens": 500,
        }  # fmt: skip
        if stream:
            options = {"include_usage": True}
            with self.client.chat.completions.stream(**asked, stream_options=options) as events:
                for _ in events:
                    pass
                done = events.get_final_completion()
        else:
            done = self.client.chat.completions.create(**asked)
        message = done.choices[0].message
        self.messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        calls = [
            (c.id, c.function.name, json.loads(c.function.arguments))
            for c in message.tool_calls or ()
        ]
        for call in self.messages[-1].get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
        usage = done.usage
        return SpokenAnswer(
            message.content or "", calls, usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens, usage.completion_tokens,
        )  # fmt: skip

    def give(self, results: dict[str, str]) -> None:
        self.messages += [
            {"role": "tool", "tool_call_id": call_id, "content": text}
            for call_id, text in results.items()
        ]


class Responses:
    """OpenAI's SDK, Responses; reasoning comes back encrypted and is sent again."""

    format = "openai-responses"

    def __init__(self, url: str, model: str = "gpt-5.1") -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
        self.model = model
        self.input: list[Any] = []

    def ask(self, text: str) -> None:
        self.input.append({"role": "user", "content": text})

    def send(self, stream: bool) -> SpokenAnswer:
        tool = {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}
        asked: dict[str, Any] = {
            "model": self.model, "instructions": "Read files.", "input": self.input,
            "tools": [tool], "store": False, "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 500,
        }  # fmt: skip
        if stream:
            with self.client.responses.stream(**asked) as events:
                for _ in events:
                    pass
                done = events.get_final_response()
        else:
            done = self.client.responses.create(**asked)
        kept = done.model_dump(exclude_none=True)["output"]
        for item in kept:
            item.pop("parsed_arguments", None)
            for part in item.get("content", ()):
                part.pop("parsed", None)
        self.input += kept
        calls = [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in done.output
            if item.type == "function_call"
        ]
        usage = done.usage
        cached = usage.input_tokens_details.cached_tokens
        return SpokenAnswer(
            done.output_text, calls, usage.input_tokens, cached, usage.output_tokens
        )

    def give(self, results: dict[str, str]) -> None:
        self.input += [
            {"type": "function_call_output", "call_id": call_id, "output": text}
            for call_id, text in results.items()
        ]


class Claude:
    """Anthropic's SDK; signed thinking goes back as it came, breakpoints at the last message."""

    format = "anthropic"

    def __init__(self, url: str, model: str = "claude-opus-5-5") -> None:
        self.client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
        self.model = model
        self.messages: list[Any] = []

    def ask(self, text: str) -> None:
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def send(self, stream: bool) -> SpokenAnswer:
        mark = {"cache_control": {"type": "ephemeral"}}
        *before, last = self.messages
        marked = {**last, "content": [*last["content"][:-1], {**last["content"][-1], **mark}]}
        asked: dict[str, Any] = {
            "model": self.model, "max_tokens": 500, "messages": [*before, marked],
            "system": [{"type": "text", "text": "Read files."}],
            "tools": [{"name": "read", "input_schema": SCHEMA}],
        }  # fmt: skip
        if stream:
            with self.client.messages.stream(**asked) as events:
                done = events.get_final_message()
        else:
            done = self.client.messages.create(**asked)
        content = [block.model_dump(exclude_none=True) for block in done.content]
        content = [{k: v for k, v in block.items() if k != "parsed_output"} for block in content]
        self.messages.append({"role": "assistant", "content": content})
        text = "".join(block.text for block in done.content if block.type == "text")
        calls = [(b.id, b.name, b.input) for b in done.content if b.type == "tool_use"]
        usage = done.usage
        read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        prompt = usage.input_tokens + read + written
        return SpokenAnswer(text, calls, prompt, read, usage.output_tokens)

    def give(self, results: dict[str, str]) -> None:
        content = [
            {"type": "tool_result", "tool_use_id": call_id, "content": text}
            for call_id, text in results.items()
        ]
        self.messages.append({"role": "user", "content": content})


class Gemini:
    """google-genai; contents go back as the SDK's own objects, thought signatures in them."""

    format = "gemini"

    def __init__(self, url: str, model: str = "gemini-3.5-pro") -> None:
        self.options = types.HttpOptions(base_url=url)
        self.client = genai.Client(api_key="x", vertexai=False, http_options=self.options)
        self.model = model
        self.contents: list[Any] = []
        self.names: dict[str, str] = {}

    def ask(self, text: str) -> None:
        self.contents.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def send(self, stream: bool) -> SpokenAnswer:
        tool = types.FunctionDeclaration(name="read", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            system_instruction="Read files.",
            max_output_tokens=500,
            tools=[types.Tool(function_declarations=[tool])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        asked: dict[str, Any] = {
            "model": self.model, "contents": self.contents, "config": config,
        }  # fmt: skip
        if stream:
            chunks = list(self.client.models.generate_content_stream(**asked))
        else:
            chunks = [self.client.models.generate_content(**asked)]
        parts = [p for c in chunks for p in c.candidates[0].content.parts or () if p.text != ""]
        self.contents.append(types.Content(role="model", parts=parts))
        text = "".join(part.text for part in parts if part.text and not part.thought)
        wanted = [part.function_call for part in parts if part.function_call]
        calls = [(f"{call.name}#{n}", call.name, dict(call.args)) for n, call in enumerate(wanted)]
        self.names = {call_id: name for call_id, name, _ in calls}
        usage = chunks[-1].usage_metadata
        cached = usage.cached_content_token_count or 0
        output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return SpokenAnswer(text, calls, usage.prompt_token_count, cached, output)

    def give(self, results: dict[str, str]) -> None:
        parts = [
            types.Part.from_function_response(name=self.names[call_id], response={"result": text})
            for call_id, text in results.items()
        ]
        self.contents.append(types.Content(role="user", parts=parts))


class Bedrock:
    """boto3, Converse; the model is Claude, so reasoning is signed here too."""

    format = "bedrock"

    def __init__(self, url: str, model: str = "us.anthropic.claude-opus-5-5-v1:0") -> None:
        retries = {"total_max_attempts": 1}
        self.client = boto3.client(
            "bedrock-runtime", endpoint_url=url, region_name="us-east-1",
            aws_access_key_id="x", aws_secret_access_key="x", config=Config(retries=retries),
        )  # fmt: skip
        self.model = model
        self.messages: list[Any] = []

    def ask(self, text: str) -> None:
        self.messages.append({"role": "user", "content": [{"text": text}]})

    def send(self, stream: bool) -> SpokenAnswer:
        *before, last = self.messages
        point = {"cachePoint": {"type": "default"}}
        marked = {**last, "content": [*last["content"], point]}
        tool = {"name": "read", "inputSchema": {"json": SCHEMA}}
        asked: dict[str, Any] = {
            "modelId": self.model, "messages": [*before, marked],
            "system": [{"text": "Read files."}], "inferenceConfig": {"maxTokens": 500},
            "toolConfig": {"tools": [{"toolSpec": tool}]},
        }  # fmt: skip
        if stream:
            content, usage = _joined(self.client.converse_stream(**asked)["stream"])
        else:
            done = self.client.converse(**asked)
            content, usage = done["output"]["message"]["content"], done["usage"]
        self.messages.append({"role": "assistant", "content": content})
        text = "".join(block.get("text", "") for block in content)
        uses = [block["toolUse"] for block in content if "toolUse" in block]
        calls = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
        read, written = usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]
        prompt = usage["inputTokens"] + read + written
        return SpokenAnswer(text, calls, prompt, read, usage["outputTokens"])

    def give(self, results: dict[str, str]) -> None:
        content = [
            {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}
            for call_id, text in results.items()
        ]
        self.messages.append({"role": "user", "content": content})


def _joined(stream: Any) -> tuple[list[Any], Any]:
    """The content blocks and the usage of a Converse stream."""
    content: list[Any] = []
    usage: Any = None
    for event in stream:
        if "contentBlockStart" in event:
            content.append(
                {"toolUse": {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}}
            )
        elif "contentBlockDelta" in event:
            at = event["contentBlockDelta"]["contentBlockIndex"]
            if at == len(content):
                content.append({})
            _add(content[at], event["contentBlockDelta"]["delta"])
        elif "contentBlockStop" in event:
            block = content[event["contentBlockStop"]["contentBlockIndex"]]
            if "toolUse" in block:
                block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
        elif "metadata" in event:
            usage = event["metadata"]["usage"]
    return content, usage


def _add(block: Any, delta: Any) -> None:
    if "toolUse" in delta:
        block["toolUse"]["input"] += delta["toolUse"]["input"]
    elif "reasoningContent" in delta:
        said = block.setdefault("reasoningContent", {"reasoningText": {}})["reasoningText"]
        for key, text in delta["reasoningContent"].items():
            said[key] = said.get(key, "") + text
    else:
        block["text"] = block.get("text", "") + delta["text"]


CLIENTS = (Chat, Responses, Claude, Gemini, Bedrock)


def wrap(sdk: Any, **keywords: Any) -> None:
    """Guard the client of one of these: google-genai's by its class, all others by themselves."""
    if isinstance(sdk, Gemini):
        made = trimtab.wrap(genai.Client, **keywords)
        sdk.client = made(api_key="x", vertexai=False, http_options=sdk.options)
    else:
        sdk.client = trimtab.wrap(sdk.client, **keywords)
