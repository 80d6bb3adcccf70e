"""Dialects of the chat format: one row for each provider that speaks it its own way.

To add one: a row here, its name in ``registry.FormatName``, and its name in the rows of
``rules.py`` that it refuses (``dialects=``); an odd rule is a scan in ``dialect_rules.py``.  Tests:
``tests/contract/formats/test_chat_dialects.py``, ``tests/unit/formats/test_detect.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from trimtab.transcript.model import Facts


@dataclass(frozen=True)
class Dialect:
    """One provider's way to speak the chat format; patterns are searched in lower case."""

    name: str
    models: str = ""
    """A pattern of its models' names."""
    hosts: tuple[str, ...] = ()
    """Ends of its host names."""
    aliases: tuple[str, ...] = ()
    """What else people call it."""
    part_of: str = ""
    """The dialect of the same provider that its host names; the model's name says that this one
    applies."""
    passes_on: bool = False
    """Whether it passes requests on to the model's maker, whose rules then apply."""
    stand_in: Literal["", "user", "assistant"] = ""
    """The role that the note in place of dropped turns must have."""
    wants_reasoning: bool = False
    """Whether it requires the reasoning of messages with calls to be sent back."""
    thinks: str = ""
    """A pattern of models that think unless the request says no (the provider's documentation)."""
    never_thinks: str = ""


DIALECTS = (
    # The default, and the strictest in lengths.
    Dialect("openai", hosts=("api.openai.com",)),
    Dialect(
        "azure",
        hosts=("openai.azure.com", "ai.azure.com", "cognitiveservices.azure.com"),
        passes_on=True,
    ),
    Dialect(
        "deepseek",
        r"deepseek",
        ("api.deepseek.com",),
        stand_in="user",  # every message of the model in a turn with calls must have reasoning
        wants_reasoning=True,
        thinks=r"deepseek-(v[4-9]|reasoner|flash|pro)",
        never_thinks=r"deepseek-chat|deepseek-coder",
    ),
    Dialect(
        "kimi",
        r"kimi|moonshot",
        ("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
        aliases=("moonshot",),
        wants_reasoning=True,
        thinks=r"kimi-k2\.[5-9]|k2p[5-9]|kimi-(k[3-9]|for-coding|latest)|(kimi|moonshot).*thinking",
        never_thinks=r"kimi-k2-(0|instruct|turbo)|moonshot-v1",
    ),
    Dialect(
        "glm",
        r"(?<![a-z])glm|chatglm|zhipu|(^|/)z-?ai/",
        ("bigmodel.cn", "api.z.ai"),
        aliases=("zhipu",),
    ),
    Dialect("minimax", r"minimax|(^|/)abab", ("minimax.io", "minimaxi.com", "minimax.chat")),
    Dialect(
        "mistral",
        r"mistral|ministral|codestral|devstral|magistral|pixtral|voxtral",
        ("mistral.ai",),
        stand_in="assistant",  # it takes no user message after results
    ),
    # Mistral's models up to the end of 2024.
    Dialect(
        "mistral-v3",
        r"open-mi[sx]tral|mistral-7b|mixtral|mistral-nemo|mamba|"
        r"(mistral|codestral|ministral|pixtral)[a-z0-9-]*-24\d\d",
        part_of="mistral",
        stand_in="assistant",
    ),
    Dialect("xiaomi", r"xiaomi|(?<![a-z])mimo", ("xiaomimimo.com",)),
    Dialect("openrouter", hosts=("openrouter.ai",), passes_on=True),
    Dialect("groq", hosts=("api.groq.com",)),
    Dialect("cerebras", hosts=("api.cerebras.ai",)),
    Dialect("dashscope", hosts=("aliyuncs.com",)),
    Dialect("vllm"),
    Dialect("llamacpp", aliases=("ollama", "llama.cpp", "lmstudio")),
    # Another maker's model, for which no refusal has been quoted.
    Dialect(
        "other",
        r"gpt-oss|claude|anthropic|gemini|gemma|grok|llama|qwen|qwq|(^|/)phi|command|cohere|"
        r"nova|nemotron|jamba|granite|hermes|(^|/)yi-|ernie|doubao|hunyuan|step-|sonar",
        ("api.x.ai", "api.together.xyz", "api.fireworks.ai", "generativelanguage.googleapis.com"),
        aliases=("litellm",),
    ),
)
NAMES: Mapping[str, tuple[str, ...]] = {dialect.name: dialect.aliases for dialect in DIALECTS}
"""Dialect → what else people call it."""
REASONERS = frozenset(dialect.name for dialect in DIALECTS if dialect.wants_reasoning)

_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
_MODELS = tuple((re.compile(dialect.models), dialect) for dialect in DIALECTS if dialect.models)
_THINK = tuple(re.compile(dialect.thinks) for dialect in DIALECTS if dialect.thinks)
_NEVER = tuple(re.compile(dialect.never_thinks) for dialect in DIALECTS if dialect.never_thinks)


def of_model(model: Any) -> str:
    """``deepseek/deepseek-v4-pro`` → deepseek, ``gpt-5.1``, an unknown alias or None → openai."""
    name = str(model or "").lower()
    found = [dialect for pattern, dialect in _MODELS if pattern.search(name)]
    if not found:
        return "openai"
    first = found[0]
    return next((other.name for other in found if other.part_of == first.name), first.name)


def of_host(host: str, headers: Mapping[str, str]) -> str:
    """``api.deepseek.com`` → deepseek; by an ``api-key`` azure; "" if neither says anything."""
    low = host.lower().partition(":")[0]
    for dialect in DIALECTS:
        if any(low == end or low.endswith(f".{end}") for end in dialect.hosts):
            return dialect.name
    return "azure" if "api-key" in headers else ""


def thinking(model: Any) -> str:
    """Whether a model thinks by default: "enabled", "disabled", or "" if unknown."""
    name = str(model or "").lower()
    if any(pattern.search(name) for pattern in _THINK):
        return "enabled"
    return "disabled" if any(pattern.search(name) for pattern in _NEVER) else ""


def facts_in(facts: Facts, named: str) -> Facts:
    """The facts of a chat request in the dialect that a host or a caller names; the model's own,
    where the one that is named passes requests on or is too wide."""
    own = _BY_NAME.get(facts.dialect)
    if own is not None and own.part_of == named:
        named = own.name
    if _BY_NAME[named].passes_on and own is not None and own.name not in ("openai", "other"):
        named = own.name
    return replace(facts, dialect=named, stand_in=_BY_NAME[named].stand_in)


def with_dialect(facts: Facts) -> Facts:
    """The facts of a chat request in the dialect of its model."""
    dialect = of_model(facts.model)
    return replace(facts, dialect=dialect, stand_in=_BY_NAME[dialect].stand_in)
