"""Answers of Gemini's generateContent, whole and in chunks that are answers themselves."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.answers import AnswerError, AnswerTable, UsageKeys
from trimtab.formats.engine.parts import value_at
from trimtab.formats.engine.rewriter import AnswerRewriter, loads, sse
from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.formats.gemini.parts import PARTS

ANSWERS = AnswerTable(
    parts=("candidates", 0, "content", "parts"),
    tokens=UsageKeys(
        "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount",
        thought="thoughtsTokenCount",
    ),
    usage="usageMetadata",
    blank={"text": ""},
    structured=((("generationConfig", "responseMimeType"), ("application/json",)),),
)  # fmt: skip


class GeminiRewriter(AnswerRewriter):
    """Parts of all rounds are parts of one content."""

    answers, table = ANSWERS, PARTS

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one chunk."""
        tree = loads(event)
        if not tree or not tree.get("candidates"):
            return event.raw
        parts = value_at(tree, self.answers.parts)
        shown = []
        for part in parts if isinstance(parts, list) else ():
            number = len(self._parts)
            if isinstance(part, dict) and not self._take(number, part):
                self._find_break(number, part)
                shown.append(self._with_lead(number, part))
        end = "\r\n" if event.raw.endswith(b"\r\n") else "\n"
        if tree["candidates"][0].get("finishReason"):
            self._end = [(end, self._with_parts(tree, shown))]
            return b""
        return self._frame(self._with_parts(tree, shown), end) if shown else b""

    def _frame(self, tree: dict[str, Any], name: str) -> bytes:
        """``name``: the end of a line."""
        return sse(tree, end=name.encode())

    def _ended(self, name: str, tree: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if tree.get(self.answers.usage):
            self._add_cost(tree)
            tree = self._costed(tree)
        return tree, name

    def failed(self, failure: AnswerError) -> bytes:
        """A chunk with nothing but an error."""
        error = {"code": failure.status, "message": failure.message, "status": failure.kind}
        return sse({"error": error}, end=b"\r\n")
