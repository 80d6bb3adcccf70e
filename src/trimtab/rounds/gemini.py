"""Rewrites Gemini answers of several rounds into one."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.rounds.stream_rewriter import RewriterBase, SaidError, loads, sse


class GeminiRewriter(RewriterBase):
    """Parts of all rounds are parts of one content."""

    def __init__(self) -> None:
        super().__init__("gemini")
        self.recalls: list[Any] = []
        self.has_client_calls = False
        self._rounds = 0
        self._parts: list[Any] = []
        self._shown: list[Any] = []
        """The parts of this round for the client."""
        self._before: list[Any] = []
        self._end: tuple[Any, list[Any], bytes] | None = None
        self._last: dict[str, Any] = {}

    def begin(self) -> None:
        """Begin a round."""
        if self._rounds:
            self._before += self._for_client()
        self._rounds += 1
        self.recalls, self.has_client_calls, self._parts, self._end = [], False, [], None
        self._shown = []
        self.begin_text()

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree = loads(event)
        candidates = tree.get("candidates") if tree else None
        if not tree or not candidates:
            return event.raw
        parts = self._take(candidates[0])
        line = b"\r\n" if event.raw.endswith(b"\r\n") else b"\n"
        if candidates[0].get("finishReason"):
            self._end = (tree, parts, line)
            return b""
        return sse(_with_parts(tree, parts), end=line) if parts else b""

    def _take(self, candidate: Any) -> list[Any]:
        """The parts for the client; all are taken in."""
        content = candidate.get("content") or {}
        parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
        self._parts += parts
        calls = [part for part in parts if "functionCall" in part]
        self.recalls += [part for part in calls if self.is_call(part)]
        self.has_client_calls |= any(not self.is_call(part) for part in calls)
        kept = (p for p in parts if not ("functionCall" in p and self.is_call(p)))
        shown = [self._broken(part) for part in kept]
        self._shown += shown
        return shown

    def _broken(self, part: dict[str, Any]) -> dict[str, Any]:
        """A part for the client."""
        text = part.get("text")
        if part.get("thought") or not isinstance(text, str):
            return part
        lead = self.break_before(text)
        return {**part, "text": lead + text} if lead else part

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._last = tree
        self._usage = self.added(self._usage, tree.get("usageMetadata"))
        for candidate in (tree.get("candidates") or ())[:1]:
            self._take(candidate)

    def real(self) -> list[Any]:
        """One content, without parts that say nothing."""
        return [{"role": "model", "parts": [part for part in self._parts if part != {"text": ""}]}]

    def _for_client(self) -> list[Any]:
        return list(self._shown)

    def visible(self) -> list[Any]:
        """One content."""
        return [{"role": "model", "parts": [*self._before, *self._for_client()]}]

    def end(self) -> bytes:
        """The chunk with the reason to stop, and what all rounds cost."""
        if self._end is None:
            return b""
        tree, shown, line = self._end
        tree = _with_parts(tree, shown or [{"text": ""}])
        if tree.get("usageMetadata"):
            tree["usageMetadata"] = self.added(self._usage, tree["usageMetadata"])
        return sse(tree, end=line)

    def failed(self, failure: SaidError) -> bytes:
        """A chunk with nothing but an error."""
        error = {"code": failure.status, "message": failure.message, "status": failure.kind}
        return sse({"error": error}, end=b"\r\n")

    def discard_round_end(self) -> None:
        """Drop the end of this round, as another one follows."""
        if self._end is not None:
            self._usage = self.added(self._usage, self._end[0].get("usageMetadata"))

    def answer(self) -> Any:
        """The last answer with what all rounds said."""
        parts = self.visible()[0]["parts"] or [{"text": ""}]
        return {**_with_parts(self._last, parts), "usageMetadata": self._usage}


def _with_parts(tree: Any, parts: list[Any]) -> dict[str, Any]:
    first, *rest = tree["candidates"]
    content = {**(first.get("content") or {"role": "model"}), "parts": parts}
    return {**tree, "candidates": [{**first, "content": content}, *rest]}
