"""What the events of a stream, or a whole answer, say: nothing yet, content, an error, usage.

Knows the answers of the five APIs.  Does not know requests, nor what an error means.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from trimtab.proxy.frames import AwsFrames, Event, Frames, ServerSent

Says = Literal["nothing", "content", "error"]


@dataclass(slots=True)
class Usage:
    """Tokens as the provider counted them: of the prompt (cached ones included), output."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    def take(self, tree: Any) -> None:
        """Add what a piece of an answer says; later numbers replace earlier ones."""
        found = usage_in(tree)
        self.prompt = found.prompt or self.prompt
        self.cached = found.cached or self.cached
        self.output = found.output or self.output

    def watch(self, frames: Frames, part: bytes) -> None:
        """Read the usage in a piece of a stream; what says nothing of it is not parsed."""
        for event in frames.feed(part):
            if b"sage" in event.data:
                self.take(parsed(event.data))


def usage_in(tree: Any) -> Usage:
    """The usage in a body or an event, wherever its format has it."""
    if not isinstance(tree, dict):
        return Usage()
    inner: Any = tree
    for key in ("message", "response"):
        if isinstance(tree.get(key), dict) and "usage" in tree[key]:
            inner = tree[key]
    said = inner.get("usage") or inner.get("usageMetadata")
    if not isinstance(said, dict):
        return Usage()
    details = said.get("prompt_tokens_details") or said.get("input_tokens_details") or {}
    cached = _number(details, "cached_tokens") if isinstance(details, dict) else 0
    cached = cached or _number(
        said, "cache_read_input_tokens", "cacheReadInputTokens", "cachedContentTokenCount"
    )
    prompt = _number(said, "prompt_tokens", "promptTokenCount", "input_tokens", "inputTokens")
    if "prompt_tokens" not in said and "promptTokenCount" not in said and not details:
        # Anthropic and Bedrock count what came from the cache and what went into it apart.
        written = _number(said, "cache_creation_input_tokens", "cacheWriteInputTokens")
        prompt += cached + written
    output = _number(
        said, "completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount"
    )
    return Usage(prompt, cached, output)


def _number(table: Any, *keys: str) -> int:
    return next((n for key in keys if type(n := table.get(key)) is int and n > 0), 0)


def frames_for(format: str) -> Frames:
    """How streams of this format are cut."""
    return AwsFrames() if format == "bedrock" else ServerSent()


def parsed(data: bytes) -> Any:
    """The JSON in an event; None where there is none."""
    try:
        return json.loads(data)
    except ValueError:
        return None


def says(format: str, event: Event, tree: Any) -> Says:
    """What an event says.  ``tree``: its data, parsed."""
    if event.failed:
        return "error"
    if not event.data:
        return "nothing"
    if not isinstance(tree, dict):
        return "content"  # "[DONE]", or nothing we know
    if _is_error(format, event, tree):
        return "error"
    if format == "openai-chat":
        return "content" if any(map(_chosen, tree.get("choices") or ())) else "nothing"
    if format == "openai-responses":
        early = ("response.created", "response.in_progress", "response.queued")
        return "nothing" if tree.get("type") in early else "content"
    if format == "anthropic":
        return "nothing" if tree.get("type") in ("message_start", "ping") else "content"
    if format == "bedrock":
        return "nothing" if event.name == "messageStart" else "content"
    return "content"


def _is_error(format: str, event: Event, tree: dict[str, Any]) -> bool:
    if event.name == "error" or tree.get("type") in ("error", "response.failed"):
        return True
    return bool(tree.get("error")) and not tree.get("choices") and not tree.get("candidates")


def _chosen(choice: Any) -> bool:
    """Whether a choice of a chunk says more than its role."""
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return True
    said = any(value for key, value in delta.items() if key != "role")
    return said or choice.get("finish_reason") is not None


def is_error(tree: Any) -> bool:
    """Whether a whole answer with status 200 is an error nevertheless."""
    if isinstance(tree, list):
        return bool(tree) and is_error(tree[0])
    if not isinstance(tree, dict):
        return False
    found = tree.get("error") or tree.get("type") == "error"
    answered = any(tree.get(key) for key in ("choices", "output", "content", "candidates"))
    return bool(found) and not answered
