"""Answers of Anthropic Messages, whole and as streams."""

from __future__ import annotations

from trimtab.formats.anthropic.parts import PARTS
from trimtab.formats.engine.answers import AnswerError, AnswerTable, Delta, UsageKeys
from trimtab.formats.engine.rewriter import AnswerRewriter, sse

ANSWERS = AnswerTable(
    parts=("content",),
    tokens=UsageKeys(
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        apart=True,
    ),
    structured=((("output_format",), ()), (("output_config", "format"), ())),
    stop="stop_reason",
    stops=("tool_use", "end_turn"),
    opening=("message_start",),
    opening_usage=("message", "usage"),
    ending=("message_delta", "message_stop"),
    final_usage="message_delta",
    index="index",
    begins="content_block_start",
    begun=("content_block",),
    text=("delta", "text"),
    deltas=(
        Delta(("text",), ("text",)),
        Delta(("thinking",), ("thinking",)),
        Delta(("signature",), ("signature",)),
        Delta(("partial_json",), ("input",), "json"),
        Delta(("citation",), ("citations",), "item"),
    ),
)  # fmt: skip


class AnthropicRewriter(AnswerRewriter):
    """Blocks of all rounds are blocks of one message."""

    answers, table = ANSWERS, PARTS

    def failed(self, failure: AnswerError) -> bytes:
        """The event ``error``."""
        error = {"type": failure.kind, "message": failure.message}
        return sse({"type": "error", "error": error}, "error")
