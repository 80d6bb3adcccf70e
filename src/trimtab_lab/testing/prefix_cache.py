"""A prefix cache as providers bill it.

Each format has a minimum, a step, and may need breakpoints.  Entries expire only if a clock is
given.

Sources: Anthropic's, OpenAI's and Google's pages on prompt caching (minimum by model, 128-token
steps, a look back of about 20 blocks from a breakpoint).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trimtab_lab.testing.prompt_parts import PromptPart

FIVE_MINUTES, HALF_AN_HOUR, ONE_HOUR = 300.0, 1800.0, 3600.0


@dataclass(frozen=True, slots=True)
class CacheRule:
    """``minimum`` and ``step`` in tokens; ``marked``: whether only prefixes up to breakpoints are
    cached; ``look_back``: blocks before a breakpoint that are searched for a cached prefix;
    ``lifetime`` in seconds; ``writes``: whether all that is not read is billed as written."""

    minimum: int
    step: int = 1
    marked: bool = False
    look_back: int = 20
    lifetime: float = FIVE_MINUTES
    writes: bool = False


_CLAUDE = (
    (r"opus-4-[56]|haiku-4-5", 4096),
    (r"opus-4-7|3-5-haiku|haiku-3-5", 2048),
    (r"opus-5|fable|mythos|sonnet-5-5|haiku-5-5", 512),
)
_GEMINI = ((r"gemini-4", 6144), (r"gemini-3", 4096))
_GPT_5_6 = re.compile(r"gpt-(5\.[6-9]|[6-9]|[1-9]\d)\b")  # these, and later ones
_LOCAL = frozenset({"llamacpp", "llamacpp-2025", "llama-cpp-python", "lmstudio", "ollama", "vllm"})


def rule_for(format: str, style: str, model: str | None) -> CacheRule:
    """How this provider caches a model's prompts."""
    if style in _LOCAL:
        return CacheRule(1)
    if format in ("anthropic", "bedrock"):
        return CacheRule(_minimum(_CLAUDE, model, 1024), marked=True)
    if format in ("gemini", "gemini-interactions"):
        return CacheRule(_minimum(_GEMINI, model, 2048))
    if format == "openai-responses" and _GPT_5_6.match(model or ""):
        return CacheRule(1024, lifetime=HALF_AN_HOUR, writes=True)
    return CacheRule(1024, step=128)


def _minimum(rows: Sequence[tuple[str, int]], model: str | None, otherwise: int) -> int:
    name = (model or "").replace(".", "-")
    return next((least for pattern, least in rows if re.search(pattern, name)), otherwise)


class CacheHit(NamedTuple):
    """Tokens read from the cache, and tokens billed as written to it."""

    cached: int
    written: int


class PrefixCache:
    """Cached prefixes by model and digest."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}
        self._most = 1_000

    def __len__(self) -> int:
        """Prefixes that are held."""
        return len(self._until)

    def take(self, model: str, parts: Sequence[PromptPart], rule: CacheRule) -> CacheHit:
        """The cached part of this prompt; then cache the prompt as far as the rule allows."""
        spots = [n for n, part in enumerate(parts) if part.mark is not None or not rule.marked]
        spots = [n for n in spots if parts[n].tokens >= rule.minimum]
        cached = self._longest(model, parts, rule, spots)
        now = self._clock() if self._clock else 0.0
        for n in spots:
            lasts = ONE_HOUR if _hour(parts[n]) else rule.lifetime
            self._until[model, parts[n].after] = now + lasts
        if self._clock and len(self._until) > self._most:
            self._until = {key: until for key, until in self._until.items() if now < until}
            self._most = max(1_000, 2 * len(self._until))
        cached -= cached % rule.step
        last = parts[spots[-1]].tokens if spots and (rule.marked or rule.writes) else 0
        return CacheHit(cached, max(last - cached, 0))

    def _longest(
        self, model: str, parts: Sequence[PromptPart], rule: CacheRule, spots: Sequence[int]
    ) -> int:
        candidates = {
            n - back for n in spots for back in range(rule.look_back + 1 if rule.marked else 1)
        }
        hits = [parts[n].tokens for n in candidates if n >= 0 and self._has(model, parts[n])]
        return max(hits, default=0)

    def _has(self, model: str, part: PromptPart) -> bool:
        until = self._until.get((model, part.after))
        return until is not None and (self._clock is None or self._clock() < until)


def _hour(part: PromptPart) -> bool:
    return isinstance(part.mark, dict) and part.mark.get("ttl") == "1h"
