"""Answers of Gemini Interactions, whole and as streams."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.answers import AnswerError, AnswerTable, UsageKeys
from trimtab.formats.engine.rewriter import AnswerRewriter, sse
from trimtab.formats.gemini_interactions.parts import PARTS
from trimtab.formats.gemini_interactions.streamed_steps import ENDS, StreamedSteps

ANSWERS = AnswerTable(
    parts=("steps",),
    tokens=UsageKeys(
        "total_input_tokens", "total_output_tokens", "total_cached_tokens",
        thought="total_thought_tokens",
    ),
    structured=((("response_format",), ()),),
    type="event_type",
    opening=("interaction.",),
    ending=ENDS,
    last="interaction",
    index="index",
    begins="step.start",
    begun=("step",),
    text=("delta", "text"),
    text_type=(("delta", "type"), "text"),
)  # fmt: skip


class GeminiInteractionsRewriter(AnswerRewriter):
    """Steps of all rounds are steps of one interaction."""

    answers, table = ANSWERS, PARTS
    assembler = StreamedSteps

    def _clear(self) -> None:
        super()._clear()
        self._streamed = StreamedSteps()

    def _grow(self, index: int, kind: str, tree: dict[str, Any]) -> bool:
        self._streamed.take(tree)
        return super()._grow(index, kind, tree)

    def _whole(self, tree: dict[str, Any]) -> dict[str, Any]:
        """The interaction, whose steps the last event leaves out."""
        return dict(self._streamed.take(tree) or tree.get("interaction") or {})

    def _ended(self, name: str, tree: dict[str, Any]) -> tuple[dict[str, Any], str]:
        # The client has read the first id at the beginning.
        last = {**(tree.get("interaction") or {}), "id": self.first_id, "usage": self._usage}
        return {**tree, "interaction": last}, name

    def failed(self, failure: AnswerError) -> bytes:
        """An ``error`` event."""
        error = {"code": failure.kind, "message": failure.message}
        return sse({"event_type": "error", "error": error}, "error")
