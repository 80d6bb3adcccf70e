"""The request formats by name, and detection of a request's format and dialect from its address,
its headers and its shape.

A format is a module of this folder with the functions of ``wire.base.Format``; a new one is added
to ``FORMATS``.  Messages are not read here (each format does).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from trimtab.errors import InvalidRequest, InvalidSetting, expect, expect_text
from trimtab.formats import (
    anthropic,
    bedrock,
    gemini,
    gemini_interactions,
    misnamed,
    openai_chat,
    openai_responses,
)
from trimtab.formats.engine.base import Format
from trimtab.formats.no_request import no_shape, no_type
from trimtab.formats.openai_chat import dialects
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import parse_bytes

FormatName = Literal[
    "openai-chat", "openai-responses", "anthropic", "bedrock", "gemini",
    "gemini-interactions",
    "openai-chat:openai", "openai-chat:azure", "openai-chat:deepseek", "openai-chat:kimi",
    "openai-chat:glm", "openai-chat:minimax", "openai-chat:mistral", "openai-chat:mistral-v3",
    "openai-chat:xiaomi", "openai-chat:openrouter", "openai-chat:vllm", "openai-chat:llamacpp",
    "openai-chat:groq", "openai-chat:cerebras", "openai-chat:dashscope", "openai-chat:other",
    "anthropic:2023-06-01", "anthropic:2026-10-21",
]  # fmt: skip
"""What ``format=`` accepts: a format, for the chat format optionally a dialect, and for Anthropic's
a version of its API."""

Headers = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]


FORMATS: dict[str, Format] = {
    room.FORMAT.name: room.FORMAT
    for room in (gemini_interactions, openai_responses, bedrock, anthropic, gemini, openai_chat)
}
"""Formats by name, in the order of detection: the more distinctive shape first."""

CHAT = openai_chat.FORMAT.name
"""The one format with dialects."""


def find(tree: Any, name: str | None = None) -> tuple[Format, str]:
    """The format of a parsed request, and the reason.

    ``name`` may include a dialect of the chat format: ``openai-chat:deepseek``.
    Raises InvalidSetting for an unknown name, InvalidRequest if the shape fits no format.
    """
    if name is None:
        with _unexpected_types():
            format_name, reason = shape(tree)
        return FORMATS[format_name], reason
    expect_text("format", name)
    base, _, dialect = name.partition(":")
    if base not in FORMATS:
        raise misnamed.no_format(name, FORMATS, dialects.DIALECTS)
    if misnamed.is_foreign(tree, base):
        _name_the_other(tree, name, base)
    if base == "gemini" and isinstance(tree, list) and not _has_parts(tree):
        raise InvalidRequest("as gemini no message has parts: name another format, or correct it")
    if not dialect:
        return FORMATS[base], "given"
    if base == anthropic.FORMAT.name and dialect in dialects.VERSIONS:
        return _spoken(FORMATS[base], dialect), "given"
    if base != CHAT or dialect not in dialects.DIALECTS:
        raise InvalidSetting(
            f"no dialect {dialect!r} of {base}; {CHAT} has {', '.join(dialects.DIALECTS)}"
        )
    return _spoken(FORMATS[base], dialect), "given"


def _name_the_other(tree: Any, name: str, base: str) -> None:
    """Raise InvalidRequest that says which format a body looks like, if it has another's shape."""
    try:
        other, reason = shape(tree)
    except (InvalidRequest, TypeError, AttributeError, KeyError, IndexError):
        return
    if other != base:
        raise InvalidRequest(
            f"format={name!r}, but this looks like {other} ({reason}): give format={other!r}, or "
            "leave format out"
        )


def _has_parts(messages: list[Any]) -> bool:
    return not messages or any(isinstance(one, dict) and "parts" in one for one in messages)


@contextmanager
def _unexpected_types() -> Iterator[None]:
    """Turn errors of shape detection, which assumes types, into InvalidRequest."""
    try:
        yield
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise InvalidRequest(
            f"no request format: a value has an unexpected type ({error}); correct the request"
        ) from error


@cache
def _spoken(format: Format, dialect: str) -> Format:
    """One object for each dialect, so that messages cached by format are found again."""
    if format.name == CHAT:
        return dialects.in_dialect(format, dialect)
    return dialects.in_version(format, dialect)


@dataclass(frozen=True, slots=True)
class Detected:
    """A format, its dialect ("" if it has only one), and the reason for the choice."""

    format: str
    dialect: str
    reason: str
    version: str = ""
    """The version of the provider's API that a header names, where our rules tell it apart."""

    @property
    def name(self) -> str:
        """For ``format=``: ``openai-chat:deepseek``, ``anthropic:2026-10-21``, or the format's name
        alone."""
        if self.version:
            return f"{self.format}:{self.version}"
        chat = self.format == CHAT and self.dialect in dialects.DIALECTS
        return f"{self.format}:{self.dialect}" if chat else self.format


def detect(request: Any, *, url: str | None = None, headers: Headers | None = None) -> Detected:
    """Return the format and dialect of a request, and the reason.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes; ``url``: the
    address it is sent to, or its path; ``headers``: a mapping or pairs.  These are tried in order,
    and the first match that the body's shape allows is taken:

    1. the path: ``…/chat/completions``, ``…/responses``, ``…/messages``,
       ``…/model/{id}/converse``, ``…:generateContent``, ``…/interactions``;
    2. the host: Anthropic's, Bedrock's, Google's (the dialect: those of OpenAI, Azure, DeepSeek,
       Moonshot, Zhipu, MiniMax, Mistral, Xiaomi, OpenRouter …);
    3. headers that begin with ``anthropic-``, ``x-goog-``, ``x-amz``, ``openai-``;
    4. the shape, by what only one format has: Responses (``input``, server-held state), Bedrock
       (``inferenceConfig``, parts without a type), Chat Completions (``stop``, ``response_format``,
       ``image_url`` …), Anthropic (its blocks, ``input_schema``, a system prompt beside the
       messages, a Claude with ``max_tokens``), Gemini (``contents``); messages that hold only text
       are Chat Completions.

    Pass the answer on as ``format=detected.name``; any ``format=`` overrides detection.
    Raises InvalidRequest if the body is not JSON (also multipart or compressed) or fits no format.
    """
    fields = _plain(headers)
    tree = _parsed(request, fields)
    host, path = _split(url)
    with _unexpected_types():
        name, reason = _first_match(tree, host, path, fields)
        dialect = FORMATS[name].read_facts(tree, _model_in(path)).dialect
    if name == CHAT:
        host_says = dialects.of_host(host) or ("azure" if "api-key" in fields else "")
        dialect = dialects.combine_dialects(host_says, dialect)
    _, _, version = dialects.with_version(name, fields).partition(":")
    return Detected(name, dialect, reason, version)


_PATHS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/chat/completions/?$"), "openai-chat"),
    (re.compile(r"/responses(/compact|/input_tokens)?/?$"), "openai-responses"),
    (re.compile(r"/messages(/count_tokens)?/?$"), "anthropic"),
    (re.compile(r"/interactions/?$"), "gemini-interactions"),
    (re.compile(r"/model/[^/]+/converse(-stream)?/?$"), "bedrock"),
    (re.compile(r"/model/[^/]*(anthropic|claude)[^/]*/invoke"), "anthropic"),
    (re.compile(r":(streamGenerateContent|generateContent|countTokens)/?$"), "gemini"),
    (re.compile(r"/publishers/anthropic/.*:(streamRawPredict|rawPredict)/?$"), "anthropic"),
    (re.compile(r"/publishers/mistralai/.*:(streamRawPredict|rawPredict)/?$"), "openai-chat"),
)
_HOSTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(^|\.)anthropic\.com$"), "anthropic"),
    (re.compile(r"^bedrock-runtime[.-].*\.amazonaws\.com"), "bedrock"),
    (re.compile(r"^generativelanguage\.googleapis\.com$|aiplatform\.googleapis\.com$"), "gemini"),
)
_HEADERS = (
    ("anthropic-", ("anthropic",)),
    ("x-goog-", ("gemini-interactions", "gemini")),
    ("x-amz", ("anthropic", "bedrock")),
    ("openai-", ("openai-responses", "openai-chat")),
)
"""(beginning of a header's name, formats); the first format that the body can be is taken."""
_MODEL_IN_PATH = re.compile(r"/(?:model|models|deployments|engines)/([^/:?]+(?::\d+)?)")
_KEY = {"openai-responses": "input", "gemini": "contents"}
"""Format → the key of its messages, if it is not ``messages``."""


def _parsed(request: Any, headers: Mapping[str, str]) -> Any:
    """The body as a tree.  Raises InvalidRequest if it is not JSON."""
    if isinstance(request, (dict, list)):
        return request
    if headers.get("content-type", "").startswith("multipart/"):
        raise InvalidRequest("a multipart body carries files, no request: pass it on as it is")
    if isinstance(request, (bytes, bytearray, memoryview)):
        data = bytes(request)
        if (
            data[:2] == b"\x1f\x8b"
            or data[:4] == b"\x28\xb5\x2f\xfd"
            or headers.get("content-encoding", "identity") not in ("identity", "")
        ):
            raise InvalidRequest("the body is compressed: decompress it first")
        return parse_bytes(data)
    if isinstance(request, str):
        return paths.parse(request)
    raise InvalidRequest(no_type(request))


def _plain(headers: Headers | None) -> dict[str, str]:
    """Headers by lower-case name, from a mapping or from pairs."""
    try:
        pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
        return {_text(name).lower(): _text(value) for name, value in pairs}
    except Exception:  # not a list of pairs
        expect(False, "headers", headers, "a mapping, or a list of pairs")
        raise


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _split(url: str | None) -> tuple[str, str]:
    """(host, path) of an address; the host is "" for a path alone."""
    expect(url is None or isinstance(url, str), "url", url, "a text")
    rest = (url or "").partition("#")[0].partition("?")[0]
    if "://" not in rest and rest.startswith("/"):
        return "", rest
    host, _, path = rest.partition("://")[2 if "://" in rest else 0].partition("/")
    return host.rpartition("@")[2].partition(":")[0].lower(), f"/{path}"


def _model_in(path: str) -> str | None:
    """The model that an address names: Bedrock, Gemini, Azure deployments."""
    match = _MODEL_IN_PATH.search(path.replace("%3A", ":").replace("%2F", "/"))
    return match.group(1) if match else None


# --- evidence --------------------------------------------------------------------------------


def _first_match(tree: Any, host: str, path: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """(format, reason): by path, by host, by headers, by shape; the first that the body can be."""
    for name, reason in _outside(tree, host, path, headers):
        if _can_be(tree, name):
            return name, reason
    return shape(tree)


def _outside(
    tree: Any, host: str, path: str, headers: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for pattern, name in _PATHS:
        if pattern.search(path):
            yield name, f"the path {path}"
    for pattern, name in _HOSTS:
        if pattern.search(host) and "/openai/" not in path:
            yield name, f"the host {host}"
    for start, names in _HEADERS:
        header = next((header for header in headers if header.startswith(start)), None)
        for name in names if header else ():
            # Amazon accepts Anthropic's body too, which then has an anthropic_version.
            if start != "x-amz" or name == "bedrock" or _has(tree, "anthropic_version"):
                yield name, f"the header {header}"


def _has(tree: Any, *keys: str) -> bool:
    return isinstance(tree, dict) and any(tree.get(key) is not None for key in keys)


def _can_be(tree: Any, name: str) -> bool:
    """Whether the body has messages (or server-held state) under this format's keys."""
    if isinstance(tree, list):
        return bool(tree)
    if name == "gemini-interactions":
        return "messages" not in tree and _has(tree, "input", "previous_interaction_id")
    if name == "openai-responses":
        return "messages" not in tree and _has(
            tree, "input", "previous_response_id", "conversation", "prompt"
        )
    return isinstance(tree, dict) and isinstance(tree.get(_KEY.get(name, "messages")), list)


# --- the shape -------------------------------------------------------------------------------

_CHAT_KEYS = (
    *("max_completion_tokens", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs"),
    *("top_logprobs", "n", "response_format", "seed", "stop", "stream_options", "modalities"),
    *("parallel_tool_calls", "reasoning_effort", "functions", "function_call", "prediction"),
    *("verbosity", "prompt_cache_key", "enable_thinking"),
)
"""Keys of a body that Chat Completions (or a compatible server) has and Anthropic does not."""
_CHAT_PARTS = ("image_url", "input_audio", "file")
_CLAUDE = re.compile(r"claude|anthropic")
_OPENAI = re.compile(r"(^|[/.])(gpt-|chatgpt|o\d)")


def shape(tree: Any) -> tuple[str, str]:
    """(format, reason) by the body alone.  Raises InvalidRequest if it fits no format.

    Formats are tried in the order of ``FORMATS``, except that features only Chat Completions has
    are tried before Anthropic, because the two differ in little else.
    """
    if isinstance(tree, (dict, list)):
        for name, format in FORMATS.items():
            if name == "anthropic" and (reason := _chat(tree)):
                return "openai-chat", reason
            if reason := format.detect(tree):
                return name, reason
    raise InvalidRequest(no_shape(tree, tuple(FORMATS)))


def _chat(tree: Any) -> str | None:
    """The reason why this can only be Chat Completions; None if there is none."""
    if not isinstance(tree, dict) or not isinstance(tree.get("messages"), list):
        return None
    messages = [message for message in tree["messages"] if isinstance(message, dict)]
    if _anthropic_only(tree, messages):
        return None
    own_key = next((key for key in _CHAT_KEYS if tree.get(key) is not None), None)
    if own_key:
        return f"the body has {own_key}"
    choice = tree.get("tool_choice")
    if isinstance(choice, str) or (isinstance(choice, dict) and choice.get("type") == "function"):
        return "tool_choice as Chat Completions has it"
    for message in messages:
        for part in _parts(message):
            if part.get("type") in _CHAT_PARTS:
                return f"a message has a part of type {part['type']}"
    return _by_model(tree, messages)


def _parts(message: Any) -> Iterator[Any]:
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            yield part


def _anthropic_only(tree: Any, messages: list[Any]) -> bool:
    """Whether there are tools with ``input_schema``, or Anthropic's blocks and no chat messages."""
    tools = tree.get("tools")
    if any(
        isinstance(tool, dict) and "input_schema" in tool
        for tool in (tools if isinstance(tools, list) else ())
    ):
        return True
    chat = any(m.get("tool_calls") or m.get("role") in ("tool", "function") for m in messages)
    blocks = ("tool_use", "tool_result", "server_tool_use", "redacted_thinking")
    return not chat and any(p.get("type") in blocks for m in messages for p in _parts(m))


def _by_model(tree: Any, messages: list[Any]) -> str | None:
    """The reason, if the model is no Claude and the body lacks what Anthropic's API requires."""
    model = str(tree.get("model") or "").lower()
    if not model or _CLAUDE.search(model):
        return None
    if messages and messages[0].get("role") == "system":
        return f"a first message of the system, and the model {model}"
    thinking = tree.get("thinking")
    budget = isinstance(thinking, dict) and "budget_tokens" in thinking
    beside = isinstance(tree.get("system"), list) or budget
    if _OPENAI.search(model) or (tree.get("max_tokens") is None and not beside):
        return f"the model {model}"
    return None
