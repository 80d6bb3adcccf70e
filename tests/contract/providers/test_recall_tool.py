"""The recall tool through the providers' own clients: a model asks, and gets the original."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from sdk_clients import anthropic, boto3, genai, openai  # skips where they are not installed
from shapes import FORMATS, items_of, session

import trimtab
from trimtab_lab.testing import Answer, Call, StrictProvider


def _chat(url: str, request: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    message = client.chat.completions.create(**request).choices[0].message
    return [message.model_dump(exclude_none=True)], list(message.tool_calls or ())


def _responses(url: str, request: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    output = client.responses.create(**request, store=False).output
    kept = [item.model_dump(exclude_none=True) for item in output]
    return kept, [item for item in output if item.type == "function_call"]


def _anthropic(url: str, request: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    content = client.messages.create(**request).content
    kept = {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in content]}
    return [kept], [block for block in content if block.type == "tool_use"]


def _bedrock(url: str, request: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    client = boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1",
        aws_access_key_id="x", aws_secret_access_key="x",
    )  # fmt: skip
    message = client.converse(**request)["output"]["message"]
    return [message], [part for part in message["content"] if "toolUse" in part]


def _gemini(url: str, request: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    options = genai.types.HttpOptions(base_url=url)
    client = genai.Client(api_key="x", vertexai=False, http_options=options)
    config = {"tools": request["tools"], "automatic_function_calling": {"disable": True}}
    done = client.models.generate_content(
        model=request["model"], contents=request["contents"], config=config
    )
    content = done.candidates[0].content
    kept = content.model_dump(by_alias=True, exclude_none=True, mode="json")
    return [kept], [p for p in content.parts if p.function_call]


SEND: dict[str, Callable[[str, dict[str, Any]], tuple[list[Any], list[Any]]]] = {
    "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic,
    "bedrock": _bedrock, "gemini": _gemini,
}  # fmt: skip
MODELS = {"openai-chat": "gpt-5.1", "openai-responses": "gpt-5.1"}


def with_tools(format: str, request: dict[str, Any]) -> dict[str, Any]:
    """The request with the recall tool beside the one that its calls are of."""
    schema, own = {"type": "object", "properties": {}}, trimtab.recall_tool(format).definition
    if format == "bedrock":
        request["toolConfig"]["tools"].append(own)
    elif format == "gemini":
        request["tools"] = [{"functionDeclarations": [{"name": "read"}]}, own]
    elif format == "anthropic":
        request["tools"] = [{"name": "read", "input_schema": schema}, own]
    else:
        function = {"name": "read", "parameters": schema}
        chat = {"type": "function", "function": function}
        request["tools"] = [
            chat if format == "openai-chat" else {"type": "function", **function},
            own,
        ]
    return request


def recalls(record: Any) -> Answer | str:
    """A model that asks once for the first thing a note names, then is content."""
    text = json.dumps(items_of(record.body))
    if '"name": "recall"' in text:
        return "Done."
    handle = re.search(r'recall\(\\*"([^"\\]+)', text)
    assert handle, "no note names a handle"
    return Answer("", [Call("recall", {"handle": handle[1], "search": "token"})])


@pytest.mark.parametrize("format", FORMATS)
def test_a_model_gets_an_original_back_through_the_providers_own_client(format: str) -> None:
    request = with_tools(format, session(format, steps=12, model=MODELS.get(format, "")))
    if format == "openai-chat":
        for message in request["messages"]:
            message.pop("reasoning_details", None)
    tool, ours = trimtab.recall_tool(format), trimtab.Session(window=9_000, recall=True)
    with (
        warnings.catch_warnings(),
        StrictProvider(recalls, window=9_000, bind_thinking=False) as provider,
    ):
        warnings.simplefilter("ignore", DeprecationWarning)  # the client's, of a model's end
        answered, calls = SEND[format](provider.url, ours.fit(request).request)
        assert [tool.is_call(call) for call in calls] == [True]
        items_of(request).extend([*answered, tool.execute(ours, calls[0])])
        _, more = SEND[format](provider.url, ours.fit(request).request)
    assert more == []
    assert [record.status for record in provider.requests] == [200, 200]
    said = json.dumps(items_of(request)[-1])
    assert re.search(r"line \d+ \(chars \d+-\d+\): src/mod_\d+\.py:\d+: token \d+", said)
    assert trimtab.check(request, format=format) == ()
