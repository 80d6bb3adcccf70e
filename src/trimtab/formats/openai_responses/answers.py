"""Answers of OpenAI Responses, whole and as streams."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.answers import AnswerError, AnswerTable, UsageKeys
from trimtab.formats.engine.rewriter import AnswerRewriter, moved, sse, with_lead
from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.formats.openai_responses.parts import PARTS

ANSWERS = AnswerTable(
    parts=("output",),
    tokens=UsageKeys(
        "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
        details="input_tokens_details",
    ),
    structured=((("text", "format", "type"), ("json_object", "json_schema")),),
    opening=("response.created", "response.in_progress", "response.queued"),
    ending=("response.completed", "response.incomplete", "response.failed"),
    last="response",
    index="output_index",
    begins="response.output_item.added",
    begun=("item",),
    text=("delta",),
    text_type=(("type",), "response.output_text.delta"),
)  # fmt: skip


class OpenAIResponsesRewriter(AnswerRewriter):
    """Items of all rounds are items of one response; events get new numbers."""

    answers, table = ANSWERS, PARTS

    def __init__(self) -> None:
        super().__init__()
        self._number = 0

    def _frame(self, tree: dict[str, Any], name: str) -> bytes:
        if "sequence_number" in tree:
            tree = {**tree, "sequence_number": self._number}
            self._number += 1
        return sse(tree, name)

    def _passed(self, event: StreamEvent, tree: dict[str, Any]) -> bytes:
        return self._frame(tree, event.name)

    def _led_event(self, tree: dict[str, Any], index: int) -> dict[str, Any]:
        """An event about an item for the client: later ones repeat the text, or point into it."""
        led = super()._led_event(tree, index)
        part = tree.get("content_index", 0)
        if led is not tree or self._break is None or self._break[:2] != (index, part):
            return led
        lead = self._break[2]
        if tree.get("type") == "response.output_text.done":
            return {**tree, "text": lead + str(tree.get("text") or "")}
        if tree.get("type") == "response.content_part.done":
            return {**tree, "part": with_lead(tree.get("part"), ("text",), lead)}
        if tree.get("type") == "response.output_item.done":
            return {**tree, "item": self._with_lead(index, tree.get("item") or {})}
        if isinstance(tree.get("annotation"), dict):
            return {**tree, "annotation": moved(tree["annotation"], len(lead))}
        return tree

    def _ended(self, name: str, tree: dict[str, Any]) -> tuple[dict[str, Any], str]:
        # The client has read the first id at the beginning, and SDKs hold a stream to it.
        return {**tree, "response": {**self.answer(), "id": self.first_id}}, name

    def failed(self, failure: AnswerError) -> bytes:
        """``response.failed``; the SDK looks for the error beside the response."""
        error = {"code": failure.kind, "message": failure.message}
        last = {"id": self.first_id, "object": "response", "output": self.visible()}
        response = {**last, "status": "failed", "error": error}
        tree = {"type": "response.failed", "sequence_number": self._number}
        return sse({**tree, "response": response, "error": error}, "response.failed")
