"""Rewrites OpenAI Responses answers of several rounds into one."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.rounds.stream_rewriter import RewriterBase, SaidError, loads, sse

_BEGINNINGS = ("response.created", "response.in_progress", "response.queued")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponsesRewriter(RewriterBase):
    """Items get new places, events new numbers."""

    def __init__(self) -> None:
        super().__init__("openai-responses")
        self.recalls: list[Any] = []
        self.has_client_calls = False
        self._rounds = self._number = 0
        self._items: list[Any] = []
        self._before: list[Any] = []
        self._new_index: dict[int, int] = {}
        self._next = 0
        self._break: tuple[int, int, str] | None = None
        """(item, content) of this round, and what stands before its text, for the client."""
        self._last: dict[str, Any] = {}
        self._end: tuple[str, dict[str, Any]] | None = None
        self.first_id = self.last_id = ""
        """Of the first round's response, which the client knows, and of the last one's."""

    def begin(self) -> None:
        """Begin a round."""
        if self._rounds:
            self._before += self._for_client()
        self._rounds += 1
        self.recalls, self.has_client_calls, self._end = [], False, None
        self._items, self._new_index, self._break = [], {}, None
        self.begin_text()

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree = loads(event)
        if tree is None:
            return event.raw
        kind = str(tree.get("type"))
        if isinstance(tree.get("response"), dict):
            self.first_id = self.first_id or str(tree["response"].get("id") or "")
        if kind in _BEGINNINGS and self._rounds > 1:
            return b""
        if kind in _ENDS:
            self._take(tree.get("response") or {})
            self._end = (event.name, tree)
            return b""
        index = tree.get("output_index")
        if isinstance(index, int):
            if kind == "response.output_item.added" and not self._is_recall(tree.get("item")):
                self._new_index[index] = self._next
                self._next += 1
            if index not in self._new_index:
                return b""
            tree = self._broken_event(tree, index)
            tree["output_index"] = self._new_index[index]
        return self._numbered(tree, event.name)

    def _broken_event(self, tree: dict[str, Any], index: int) -> dict[str, Any]:
        """An event about an item for the client."""
        part = tree.get("content_index", 0)
        is_text = tree.get("type") == "response.output_text.delta"
        if is_text and (lead := self.break_before(tree.get("delta") or "")):
            self._break = (index, part, lead)
            return {**tree, "delta": lead + tree["delta"]}
        if self._break is None or self._break[:2] != (index, part):
            return tree
        lead = self._break[2]
        if tree.get("type") == "response.output_text.done":
            return {**tree, "text": lead + str(tree.get("text") or "")}
        if tree.get("type") == "response.content_part.done":
            return {**tree, "part": _with_lead(tree.get("part"), lead)}
        if tree.get("type") == "response.output_item.done":
            return {**tree, "item": self._broken_item(index, tree.get("item") or {})}
        if isinstance(tree.get("annotation"), dict):
            return {**tree, "annotation": _moved(tree["annotation"], len(lead))}
        return tree

    def _broken_item(self, index: int, item: dict[str, Any]) -> dict[str, Any]:
        """An item for the client."""
        if self._break is None or self._break[0] != index:
            return item
        content = list(item.get("content") or ())
        _, part, lead = self._break
        content[part : part + 1] = [_with_lead(one, lead) for one in content[part : part + 1]]
        return {**item, "content": content}

    def _numbered(self, tree: dict[str, Any], name: str) -> bytes:
        if "sequence_number" in tree:
            tree["sequence_number"] = self._number
            self._number += 1
        return sse(tree, name)

    def _is_recall(self, item: Any) -> bool:
        kind = item.get("type") if isinstance(item, dict) else ""
        return kind == "function_call" and self.is_call(item)

    def _take(self, response: dict[str, Any]) -> None:
        self._last = response
        self.last_id = str(response.get("id") or "")
        self.first_id = self.first_id or self.last_id
        self._usage = self.added(self._usage, response.get("usage"))
        self._items = [item for item in response.get("output") or () if isinstance(item, dict)]
        self.recalls = [item for item in self._items if self._is_recall(item)]
        calls = [item for item in self._items if str(item.get("type")).endswith("_call")]
        self.has_client_calls = len(calls) > len(self.recalls)
        if not self._new_index:  # not streamed
            self._find_break()

    def _find_break(self) -> None:
        for index, item in enumerate(self._items):
            content = item.get("content") if item.get("type") == "message" else None
            for part, one in enumerate(content if isinstance(content, list) else ()):
                if lead := self.break_before(str(one.get("text") or "")):
                    self._break = (index, part, lead)

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._take(tree)

    def real(self) -> list[Any]:
        """Items."""
        return list(self._items)

    def _for_client(self) -> list[Any]:
        return [
            self._broken_item(index, item)
            for index, item in enumerate(self._items)
            if not self._is_recall(item)
        ]

    def visible(self) -> list[Any]:
        """Items."""
        return [*self._before, *self._for_client()]

    def end(self) -> bytes:
        """The last event, with the items of all rounds and what they cost."""
        if self._end is None:
            return b""
        name, tree = self._end
        # The client has read the first id at the beginning, and SDKs hold a stream to it.
        response = {**self.answer(), "id": self.first_id}
        return self._numbered({**tree, "response": response}, name)

    def failed(self, failure: SaidError) -> bytes:
        """``response.failed``; the SDK looks for the error beside the response."""
        error = {"code": failure.kind, "message": failure.message}
        last = {"id": self.first_id, "object": "response", "output": self.visible()}
        response = {**last, "status": "failed", "error": error}
        tree = {"type": "response.failed", "sequence_number": self._number}
        return sse({**tree, "response": response, "error": error}, "response.failed")

    def discard_round_end(self) -> None:
        """Another round comes; what this one cost was taken."""

    def answer(self) -> Any:
        """The last response, its id included, with what all rounds said."""
        return {**self._last, "output": self.visible(), "usage": self._usage}


def _with_lead(part: Any, lead: str) -> Any:
    """A text with ``lead`` before it; what points into it moves along."""
    if not isinstance(part, dict):
        return part
    notes = [_moved(note, len(lead)) for note in part.get("annotations") or ()]
    own = {"annotations": notes} if "annotations" in part else {}
    return {**part, **own, "text": lead + str(part.get("text") or "")}


def _moved(note: Any, chars: int) -> Any:
    if not isinstance(note, dict):
        return note
    moved = {key: note[key] + chars for key in ("start_index", "end_index") if key in note}
    return {**note, **moved}
