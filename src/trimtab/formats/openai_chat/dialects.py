"""Dialects of the chat format: which provider's rules apply, by the model's name and the host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from trimtab.formats.engine.base import Format
from trimtab.transcript.model import Facts

DIALECTS = (
    *("openai", "azure", "deepseek", "kimi", "glm", "minimax", "mistral", "mistral-v3", "xiaomi"),
    *("openrouter", "groq", "cerebras", "dashscope", "vllm", "llamacpp", "other"),
)
"""``openai`` is the default and the strictest in lengths; ``other`` is another maker's model for
which no refusal has been quoted; ``mistral-v3`` are Mistral's models up to the end of 2024."""

_FAMILIES = (
    ("deepseek", re.compile(r"deepseek")),
    ("kimi", re.compile(r"kimi|moonshot")),
    ("glm", re.compile(r"(?<![a-z])glm|chatglm|zhipu|(^|/)z-?ai/")),
    ("minimax", re.compile(r"minimax|(^|/)abab")),
    ("xiaomi", re.compile(r"xiaomi|(?<![a-z])mimo")),
    (
        "mistral-v3",
        re.compile(
            r"open-mi[sx]tral|mistral-7b|mixtral|mistral-nemo|mamba|"
            r"(mistral|codestral|ministral|pixtral)[a-z0-9-]*-24\d\d"
        ),
    ),
    ("mistral", re.compile(r"mistral|ministral|codestral|devstral|magistral|pixtral|voxtral")),
    (
        "other",
        re.compile(
            r"gpt-oss|claude|anthropic|gemini|gemma|grok|llama|qwen|qwq|(^|/)phi|command|cohere|"
            r"nova|nemotron|jamba|granite|hermes|(^|/)yi-|ernie|doubao|hunyuan|step-|sonar"
        ),
    ),
)

_HOSTS = (
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure"),
    ("ai.azure.com", "azure"),
    ("cognitiveservices.azure.com", "azure"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.ai", "kimi"),
    ("api.moonshot.cn", "kimi"),
    ("api.kimi.com", "kimi"),
    ("bigmodel.cn", "glm"),
    ("api.z.ai", "glm"),
    ("minimax.io", "minimax"),
    ("minimaxi.com", "minimax"),
    ("minimax.chat", "minimax"),
    ("mistral.ai", "mistral"),
    ("xiaomimimo.com", "xiaomi"),
    ("openrouter.ai", "openrouter"),
    ("api.x.ai", "other"),
    ("api.groq.com", "groq"),
    ("api.cerebras.ai", "cerebras"),
    ("api.together.xyz", "other"),
    ("api.fireworks.ai", "other"),
    ("aliyuncs.com", "dashscope"),
    ("generativelanguage.googleapis.com", "other"),
)
_PASS_ON = ("azure", "openrouter")
"""Hosts that pass a request on to the model's maker, whose rules then apply."""

STAND_INS = {"mistral": "assistant", "mistral-v3": "assistant", "deepseek": "user"}
"""The role of a note that replaces dropped turns: Mistral takes no user message after results,
and DeepSeek demands reasoning with every assistant message in a turn with calls."""

_THINKS = re.compile(
    r"deepseek-(v[4-9]|reasoner|flash|pro)|kimi-k2\.[5-9]|k2p[5-9]|kimi-(k[3-9]|for-coding|latest)"
    r"|(kimi|moonshot).*thinking"
)
"""Models of DeepSeek and Moonshot that think unless the request says no (their documentation)."""
_NEVER_THINKS = re.compile(r"deepseek-chat|deepseek-coder|kimi-k2-(0|instruct|turbo)|moonshot-v1")


def of_model(model: Any) -> str:
    """``deepseek/deepseek-v4-pro`` → deepseek, ``gpt-5.1``, an unknown alias or None → openai."""
    name = str(model or "").lower()
    return next((dialect for dialect, pattern in _FAMILIES if pattern.search(name)), "openai")


def of_host(host: str) -> str:
    """``api.deepseek.com`` → deepseek; "" for a host that says nothing."""
    low = host.lower().partition(":")[0]
    matching = (d for end, d in _HOSTS if low == end or low.endswith(f".{end}"))
    return next(matching, "")


def combine_dialects(named: str, own: str) -> str:
    """The dialect of a request: ``named`` by a host or a caller, ``own`` from the model's name."""
    if not named or own.startswith(f"{named}-"):
        return own
    if named in _PASS_ON and own not in ("openai", "other"):
        return own
    return named


def thinking(model: Any) -> str:
    """Whether a model thinks by default: "enabled", "disabled", or "" if unknown."""
    name = str(model or "").lower()
    if _THINKS.search(name):
        return "enabled"
    return "disabled" if _NEVER_THINKS.search(name) else ""


def facts_with_dialect(facts: Facts, dialect: str) -> Facts:
    """The facts of a chat request in this dialect."""
    return replace(facts, dialect=dialect, stand_in=cast(Any, STAND_INS.get(dialect, "")))


VERSIONS = ("2023-06-01", "2026-10-21")
"""Versions of Anthropic's API, oldest first.  Its SDK sends the newest from 2.0 on, which refuses
some of what the oldest takes."""


def with_version(format: str, headers: Mapping[str, str]) -> str:
    """The format as ``fit`` takes it: with the version of Anthropic's API that a header names."""
    version = headers.get("anthropic-version", "") if format == "anthropic" else ""
    return f"{format}:{version}" if version in VERSIONS[1:] else format


def in_version(format: Format, version: str) -> Format:
    """A format as one version of the provider's API takes it: only ``Facts.version`` differs."""

    def read_facts(tree: Any, model: str | None) -> Facts:
        return replace(format.read_facts(tree, model), version=version)

    return replace(format, read_facts=read_facts)


def in_dialect(format: Format, dialect: str) -> Format:
    """A format in one provider's dialect: only ``Facts.dialect`` and ``Facts.stand_in`` differ."""

    def read_facts(tree: Any, model: str | None) -> Facts:
        facts = format.read_facts(tree, model)
        return facts_with_dialect(facts, combine_dialects(dialect, facts.dialect))

    return replace(format, read_facts=read_facts)
