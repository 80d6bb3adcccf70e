"""Answers of Bedrock Converse, whole and as frames of an AWS event stream."""

from __future__ import annotations

from typing import Any

from trimtab.formats.bedrock.parts import PARTS
from trimtab.formats.engine.answers import AnswerError, AnswerTable, Delta, UsageKeys
from trimtab.formats.engine.aws_event_stream import event_frame, exception_frame
from trimtab.formats.engine.rewriter import AnswerRewriter, dumped

_INPUT = ("toolUse", "input")
_SEALED = ("reasoningContent", "redactedContent")
ANSWERS = AnswerTable(
    parts=("output", "message", "content"),
    tokens=UsageKeys(
        "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", apart=True
    ),
    summed=("metrics",),  # milliseconds
    structured=((("outputConfig", "textFormat"), ()),),
    stop="stopReason",
    stops=("tool_use", "end_turn"),
    type="",
    opening=("messageStart",),
    ending=("messageStop", "metadata"),
    final_usage="metadata",
    index="contentBlockIndex",
    begun=("start",),
    text=("delta", "text"),
    deltas=(
        Delta(("text",), ("text",)),
        Delta(_INPUT, _INPUT, "json"),
        Delta(("reasoningContent", "text"), ("reasoningContent", "reasoningText", "text")),
        Delta(
            ("reasoningContent", "signature"), ("reasoningContent", "reasoningText", "signature")
        ),
        Delta(_SEALED, _SEALED, "value"),
    ),
)  # fmt: skip
_EXCEPTIONS = {
    429: "throttlingException",
    503: "serviceUnavailableException",
    529: "serviceUnavailableException",
}


class BedrockRewriter(AnswerRewriter):
    """Blocks of all rounds are blocks of one message."""

    answers, table = ANSWERS, PARTS
    framed = True

    def _frame(self, tree: dict[str, Any], name: str) -> bytes:
        return event_frame(name, dumped(tree))

    def failed(self, failure: AnswerError) -> bytes:
        """An exception as its SDK raises it."""
        usual = "validationException" if failure.status < 500 else "internalServerException"
        error = dumped({"message": failure.message})
        return exception_frame(_EXCEPTIONS.get(failure.status, usual), error)
