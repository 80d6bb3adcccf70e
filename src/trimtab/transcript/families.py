"""Which tokenizer a model's name means: families of models, their vocabularies and their frames.

Where the vocabularies come from: google-genai's local tokenizer names Gemma 3's for Gemini 2 to 3
and Gemma 4's from 3.1, which counts the same; ``splintr`` ships the others that are public.  For
Claude and Qwen from 3.5 it ships none: their counts are corrected ones (``corrections``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from trimtab.transcript.corrections import Correction
from trimtab.transcript.token_sources import Corrected, Source, Vocabulary

CALL_TOKENS = 10
"""Frame of one tool call or one tool result."""
CLAUDE_LAST_OF_OLD = (4, 6)
CLAUDE_OLD_CALL_TOKENS, CLAUDE_NEW_CALL_TOKENS = 40, 35
"""A call with its result costs 78 tokens beside its texts up to 4.6 and 67 from 4.7 (regression
over 6,300 billed steps)."""
CLAUDE_OLD_FRAME, CLAUDE_NEW_FRAME = 1.5, 1.75
"""Of the frames of messages and of images; also of texts where bytes are estimated."""
SIGNATURE_TOKENS_PER_CHAR = 0.28
"""Claude 4.7 and later bill hidden thinking with the block that carries its signature: 0.24
tokens a character beyond the text (median of 452 steps), the rest is margin.  Text and signatures
together cover 94 % of 35 sessions, text alone 6 %."""
MINIMAX_FACTOR = 1.1
"""No tokenizer of MiniMax is in a package: its vocabulary is of o200k's size (200,064) and splits
digits in threes like it; the tenth is margin."""

VOCABULARIES: Mapping[str, Vocabulary] = {
    vocabulary.name: vocabulary
    for vocabulary in (
        Vocabulary("o200k", "o200k_base"),
        Vocabulary("cl100k", "cl100k_base"),
        Vocabulary("gemma", "gemma4", digits_apart=True),
        Vocabulary("gemma2", "gemma2", digits_apart=True),
        Vocabulary("qwen3", "qwen3", composed=True, digits_apart=True),
        Vocabulary("tekken", "mistral_v3", digits_apart=True),
        Vocabulary("mistral-v3", "mistral_v2", digits_apart=True),
        Vocabulary("llama2", "llama2", digits_apart=True),
        Vocabulary("llama3", "llama3"),
        Vocabulary("deepseek-v3", "deepseek_v3"),
        Vocabulary("glm4", "glm4"),
        Vocabulary("kimi-k2", "kimi_k2"),
    )
}
"""By our name: those of splintr."""

_O200K, _QWEN_3 = VOCABULARIES["o200k"], VOCABULARIES["qwen3"]
# Weights as bench/fit_counts.py prints them, rounded; symbols and emoji are higher, as lines of
# them were counted a quarter too low.  Others need another number behind the name:
# it is part of a counter's version, by which what was learned of counts is stored.
_CLAUDE_OLD = Corrected(_O200K, Correction("claude up to 4.6, 1", 1.05, {
    "capital": 0.56, "lower": 0.047, "sign": 0.05, "newline": 0.7, "Latin": 1.03,
    "Vietnamese": 0.9, "Greek": 0.385, "Cyrillic": 0.165, "Armenian": 0.42, "Hebrew": 0.41,
    "Arabic": 0.55, "Indic": 0.61, "Thai": 0.6, "Georgian": 0.42, "symbol": 0.4, "kana": 0.08,
    "Han": 0.4, "Hangul": 0.72, "emoji": 1.5,
}))  # fmt: skip
_CLAUDE_NEW = Corrected(_O200K, Correction("claude from 4.7, 1", 1.0, {
    "upper": 0.66, "lower": 0.2, "sign": 0.17, "newline": 0.38, "Latin": 1.02,
    "Vietnamese": 0.7, "Greek": 0.41, "Cyrillic": 0.2, "Armenian": 0.44, "Hebrew": 0.44,
    "Arabic": 0.58, "Indic": 0.64, "Thai": 0.62, "Georgian": 0.45, "symbol": 0.4, "kana": 0.12,
    "Han": 0.47, "Hangul": 0.77, "emoji": 1.5,
}))  # fmt: skip
_QWEN_NEW = Corrected(_QWEN_3, Correction("qwen from 3.5, 1", 0.975, {
    "sign": 0.08, "newline": 1.14, "Greek": -0.48, "Cyrillic": -0.04, "Armenian": -0.3,
    "Hebrew": 0.15, "Arabic": -0.09, "Indic": -0.48, "Thai": -0.24, "Georgian": -0.35,
    "emoji": 0.45,
}))  # fmt: skip


class Family(NamedTuple):
    """How one family of models counts: ``source`` texts, ``frame`` the factor of messages' frames
    and images, ``call_tokens`` the frame of a call or a result, ``signature_rate`` tokens a
    character of a signature.  ``own``: the source is the family's own tokenizer, and its frames are
    those that our overheads were measured on."""

    label: str
    source: Source
    factor: float = 1.0
    frame: float = 1.0
    call_tokens: int = CALL_TOKENS
    signature_rate: float = 0.0
    own: bool = False


_UNKNOWN = Family("", _O200K)
_OPENAI = Family("", _O200K, own=True)
_GPT_4 = Family("", VOCABULARIES["cl100k"], own=True)
_GEMINI = Family("gemini", VOCABULARIES["gemma"])
_OLD = Family(
    "claude up to 4.6", _CLAUDE_OLD, frame=CLAUDE_OLD_FRAME, call_tokens=CLAUDE_OLD_CALL_TOKENS
)
_NEW = Family(
    "claude from 4.7", _CLAUDE_NEW, frame=CLAUDE_NEW_FRAME, call_tokens=CLAUDE_NEW_CALL_TOKENS,
    signature_rate=SIGNATURE_TOKENS_PER_CHAR,
)  # fmt: skip

_CLAUDE = re.compile(r"(?<![a-z])(?:claude|sonnet|opus|haiku|fable|mythos)")
_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")  # a date has more digits
_BY_NAME: tuple[tuple[str, Family], ...] = (
    (r"gpt-(?:4o|4\.1|4\.5|[5-9]|oss)|chatgpt-4o|codex|o[1-9](?![a-z0-9])", _OPENAI),
    (r"gpt-(?:4|3)|text-embedding-(?:3|ada)", _GPT_4),
    (r"gemma-?2|gemini-1", Family("gemini up to 1.5", VOCABULARIES["gemma2"])),
    (r"gemini|gemma|learnlm", _GEMINI),
    (r"deepseek-r1-distill-qwen", Family("qwen up to 3", _QWEN_3)),
    (r"deepseek-r1-distill-llama", Family("llama 3", VOCABULARIES["llama3"])),
    (r"deepseek", Family("deepseek", VOCABULARIES["deepseek-v3"])),
    (r"codellama|code-llama|llama-?2(?![0-9])|llama-v2|vicuna|tinyllama",
     Family("llama 2", VOCABULARIES["llama2"])),
    (r"llama-?v?4", _UNKNOWN),
    (r"llama", Family("llama 3", VOCABULARIES["llama3"])),
    (r"mixtral|mathstral|mistral-(?:7b|tiny)|open-mistral-7b|pixtral-large-24"
     r"|mistral-(?:small|medium|large)-(?:instruct-)?2[34]\d\d|codestral-(?:22b|24)",
     Family("mistral before tekken", VOCABULARIES["mistral-v3"])),
    (r"[a-z]*stral|pixtral", Family("mistral", VOCABULARIES["tekken"])),
    (r"qwq|codeqwen|qwen-?v?(?:[12][.p]?5?(?!\d)|3(?![\d.p]))|qwen-(?:[\d.p]+b|coder|turbo|mt|qwq)"
     r"|qwen-(?:plus|max|flash)-2025", Family("qwen up to 3", _QWEN_3)),
    (r"qwen", Family("qwen from 3.5", _QWEN_NEW)),
    (r"(?:chat)?glm", Family("glm", VOCABULARIES["glm4"])),
    (r"kimi|moonshot-v", Family("kimi", VOCABULARIES["kimi-k2"])),
    (r"minimax|abab", Family("minimax", _O200K, factor=MINIMAX_FACTOR)),
    (r"gpt|chatgpt|grok|nova|titan|command|jamba|nemotron|phi", _UNKNOWN),
)  # fmt: skip
"""Patterns of names, the first that is found counts.  Last those whose tokenizers are not public or
differ from model to model."""
_PATTERNS = tuple((re.compile(rf"(?<![a-z0-9])(?:{names})"), family) for names, family in _BY_NAME)


def family_of(model: str | None, format: str) -> Family:
    """The family of a model by its name, for an unknown name by the format."""
    name = (model or "").lower()
    if claude := _CLAUDE.search(name):
        version = _VERSION.search(name, claude.end())
        old = version and (int(version[1]), int(version[2] or 0)) <= CLAUDE_LAST_OF_OLD
        return _OLD if old else _NEW  # without a version the newest
    for pattern, family in _PATTERNS:
        if pattern.search(name):
            return family
    if format in ("anthropic", "bedrock"):
        return _NEW._replace(label="model unknown, taken as claude from 4.7")
    if format.startswith("gemini"):
        return _GEMINI._replace(label="model unknown, taken as gemini")
    return _UNKNOWN
