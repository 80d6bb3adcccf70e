"""Growing conversations through the clients of five SDKs that ``trimtab.wrap`` returned; what they
send, and what their callers get.

No request leaves the process: the SDKs send to functions.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from digests.chain import Chain, Clock
from digests.conversations import Found, converted
from digests.corpus import Record, number
from digests.kept import folder, seeded
from digests.scripted import Scripted

WINDOW, TURNS = 16_384, 20
SCENES: Mapping[str, dict[str, Any]] = {
    "plain": {},
    "tools": {"recall": True, "notes": True},
}
"""Keywords of ``wrap`` by a name for them; without recall, answers are refusals now and then."""
_MODELS = {
    "openai-chat": "gpt-5.1", "openai-responses": "gpt-5.1", "anthropic": "claude-sonnet-4-5",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0", "gemini": "gemini-2.5-pro",
}  # fmt: skip
_URL = "https://provider.invalid"


def scene(name: str, record: Record, format: str) -> Found:
    """A recording in one format through its SDK, every second answer a stream, half of all
    conversations through the async client."""
    talk = converted(record, format)
    if talk is None:
        return
    key = f"{name}/{format}/{record.name}"
    model = Scripted(talk, key, calls=name == "tools", refuses=name == "plain")
    chain, clock, got = Chain(), Clock(), list[tuple[str, bytes]]()
    is_async = format != "bedrock" and number(f"async {key}", 2) == 1
    with _quiet(), folder() as place, asyncio.Runner() as runner:
        words = {"window": WINDOW, "reserve": 1_000, "clock": clock, **SCENES[name]}
        words["store"] = seeded(place / "store.db", "default")

        def answer(path: str, body: bytes) -> tuple[int, str, bytes]:
            got.append((path, body))
            return model(format, body)

        call = _SDKS[format](answer, words, is_async)
        for count, end in enumerate(talk.some_ends(TURNS)):
            clock.turn()
            stream = count % 2 == 1
            model.at(count, end, stream=stream)
            got.clear()
            told = _told(call, talk.body(end), stream, runner)
            chain.add(*(part for row in got for part in row), told)
    yield f"wrap/{key}", chain.told()


def _told(call: Ask, body: dict[str, Any], stream: bool, runner: asyncio.Runner) -> str:
    """What the caller gets, as JSON; the name of the error where the SDK raises one."""
    try:
        answer = call(body, stream)
        if inspect.isawaitable(answer):
            answer = runner.run(_awaited(answer))
        if hasattr(answer, "__aiter__"):
            answer = runner.run(_listed(answer))
        elif stream:
            answer = list(answer)
    except Exception as error:
        return f"{type(error).__name__} {getattr(error, 'status_code', '')}"
    return json.dumps(_plain(answer), default=str)


async def _awaited(answer: Any) -> Any:
    return await answer


async def _listed(answer: Any) -> list[Any]:
    return [event async for event in answer]


def _plain(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_plain(one) for one in answer]
    if isinstance(answer, dict):
        return {key: value for key, value in answer.items() if key != "ResponseMetadata"}
    hidden = {"sdk_http_response"} & set(type(answer).model_fields)
    return answer.model_dump(mode="json", exclude_none=True, exclude=hidden or None)


# --- the SDKs ---

Respond = Callable[[str, bytes], tuple[int, str, bytes]]
"""Path and body → status, type, body."""
Ask = Callable[[dict[str, Any], bool], Any]
"""Sends a body, as a stream or not."""


def http_client(kind: Any, respond: Respond) -> Any:
    """An HTTP client of this class of httpx, or of one made from it, that sends to a function."""
    module = next(base.__module__ for base in kind.__mro__ if base.__module__[:5] == "httpx")
    httpx = importlib.import_module(module.partition(".")[0])

    def handle(request: Any) -> Any:
        status, type_, data = respond(request.url.raw_path.decode(), request.content)
        return httpx.Response(status, headers={"content-type": type_}, content=data)

    return kind(transport=httpx.MockTransport(handle))


def _openai(respond: Respond, words: dict[str, Any], is_async: bool) -> Any:
    import openai

    import trimtab

    made = (openai.AsyncOpenAI if is_async else openai.OpenAI)(
        api_key="k", base_url=f"{_URL}/v1", max_retries=0,
        http_client=http_client(
            openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient, respond
        ),
    )  # fmt: skip
    return trimtab.wrap(made, **words)


def _chat(respond: Respond, words: dict[str, Any], is_async: bool) -> Ask:
    create = _openai(respond, words, is_async).chat.completions.create
    return lambda body, stream: create(**_parted("openai-chat", body), stream=stream)


def _responses(respond: Respond, words: dict[str, Any], is_async: bool) -> Ask:
    create = _openai(respond, words, is_async).responses.create

    def ask(body: dict[str, Any], stream: bool) -> Any:
        parted = _parted("openai-responses", {**body, "store": False})
        return create(**parted, stream=stream)

    return ask


def _claude(respond: Respond, words: dict[str, Any], is_async: bool) -> Ask:
    import anthropic

    import trimtab

    made = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(
        api_key="k", base_url=_URL, max_retries=0,
        http_client=http_client(
            anthropic.DefaultAsyncHttpxClient if is_async else anthropic.DefaultHttpxClient, respond
        ),
    )  # fmt: skip
    create = trimtab.wrap(made, **words).messages.create

    def ask(body: dict[str, Any], stream: bool) -> Any:
        return create(**_parted("anthropic", {**body, "max_tokens": 1_000}), stream=stream)

    return ask


_NAMED = {
    "openai-chat": ("messages", "tools"),
    "openai-responses": ("input", "instructions", "tools", "store"),
    "anthropic": ("messages", "system", "tools", "max_tokens"),
}
"""Parameters of the SDK's method; the rest of a body goes into ``extra_body``."""


def _parted(format: str, body: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in body.items() if name in _NAMED[format]}
    other = {
        name: value for name, value in body.items() if name not in {*own, "model", "stream"}
    }  # fmt: skip
    return {"model": body.get("model") or _MODELS[format], **own, "extra_body": other or None}


def _gemini(respond: Respond, words: dict[str, Any], is_async: bool) -> Ask:
    import httpx
    from google import genai

    import trimtab

    options = {
        "base_url": _URL,
        "httpx_client": http_client(httpx.Client, respond),
        "httpx_async_client": http_client(httpx.AsyncClient, respond),
    }
    made = trimtab.wrap(genai.Client, **words)(
        api_key="k", vertexai=False, http_options=genai.types.HttpOptions(**options)
    )
    models = made.aio.models if is_async else made.models

    def ask(body: dict[str, Any], stream: bool) -> Any:
        method = models.generate_content_stream if stream else models.generate_content
        given = genai.types.Content
        contents = [given.model_validate(message) for message in body["contents"]]
        return method(
            model=_MODELS["gemini"], contents=contents, config=_config(genai.types, body)
        )  # fmt: skip

    return ask


def _config(types: Any, body: Mapping[str, Any]) -> Any:
    """What the SDK takes of a body beside its contents."""
    declared = [
        types.FunctionDeclaration(
            name=one["name"], description=one.get("description"),
            parameters_json_schema=one.get("parameters") or one.get("parametersJsonSchema"),
        )
        for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()
    ]  # fmt: skip
    system = body.get("systemInstruction")
    return types.GenerateContentConfig(
        system_instruction=types.Content.model_validate(system) if system else None,
        tools=[types.Tool(function_declarations=declared)] if declared else None,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


class _Raw:
    """The body of an answer, as botocore reads it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self, *given: Any, **named: Any) -> Iterator[bytes]:
        """All of it."""
        yield self._data

    def read(self, *given: Any) -> bytes:
        """All of it, once."""
        data, self._data = self._data, b""
        return data

    def close(self) -> None:
        """Nothing is open."""


def _boto3(respond: Respond, words: dict[str, Any], is_async: bool) -> Ask:
    import boto3
    from botocore.awsrequest import AWSResponse
    from botocore.config import Config

    import trimtab

    config = Config(retries={"total_max_attempts": 5}, parameter_validation=False)
    client = boto3.client(
        "bedrock-runtime", endpoint_url=_URL, region_name="us-east-1", aws_access_key_id="k",
        aws_secret_access_key="k", config=config,
    )  # fmt: skip

    def send(request: Any, **_: Any) -> Any:
        status, type_, data = respond(request.url.removeprefix(_URL), bytes(request.body))
        return AWSResponse(request.url, status, {"content-type": type_}, _Raw(data))

    client.meta.events.register("before-send.bedrock-runtime", send)
    trimtab.wrap(client, **words)

    def ask(body: dict[str, Any], stream: bool) -> Any:
        given = {**body, "modelId": body.get("modelId") or _MODELS["bedrock"]}
        if stream:
            return client.converse_stream(**given)["stream"]
        return client.converse(**given)

    return ask


_SDKS: Mapping[str, Callable[[Respond, dict[str, Any], bool], Ask]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _claude,
    "bedrock": _boto3,
    "gemini": _gemini,
}
FORMATS: Sequence[str] = tuple(_SDKS)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the SDKs say of old models and of answers that they don't know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
