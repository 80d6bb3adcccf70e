"""Rewrites Anthropic Messages answers of several rounds into one."""

from __future__ import annotations

import json
from typing import Any

from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.rounds.stream_rewriter import RewriterBase, SaidError, loads, sse


class AnthropicRewriter(RewriterBase):
    """Blocks get new indices: those of recall calls are left out, later rounds go on counting."""

    def __init__(self) -> None:
        super().__init__("anthropic")
        self.recalls: list[Any] = []
        self.has_client_calls = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._new_index: dict[int, int] = {}
        self._breaks: dict[int, str] = {}
        """Block of this round → what stands before its text, for the client."""
        self._next = 0
        self._before: list[Any] = []
        self._opening_usage: Any = None
        """What this round's ``message_start`` told of its prompt."""
        self._rounds = 0
        self._head: dict[str, Any] = {}
        self._end: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Begin a round."""
        if self._rounds:
            self._before += self._for_client()
        self._rounds += 1
        self.recalls, self.has_client_calls, self._end = [], False, []
        self._blocks, self._new_index, self._breaks = {}, {}, {}
        self.begin_text()

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree = loads(event)
        kind = tree.get("type") if tree else None
        if tree is None or kind == "ping":
            return event.raw
        if kind == "message_start":
            self._opening_usage = (tree.get("message") or {}).get("usage")
            return event.raw if self._rounds == 1 else b""
        if kind in ("message_delta", "message_stop"):
            self._end.append(tree)
            return b""
        index = tree.get("index")
        if not isinstance(index, int):
            return event.raw
        if kind == "content_block_start":
            self._start(index, tree.get("content_block") or {})
        elif kind == "content_block_delta":
            delta = tree.get("delta") or {}
            _grow(self._blocks.setdefault(index, {}), delta)
            if delta.get("type") == "text_delta":
                tree["delta"] = {**delta, "text": self._broken(index, delta.get("text", ""))}
        if index not in self._new_index:
            return b""
        return sse({**tree, "index": self._new_index[index]}, event.name)

    def _broken(self, index: int, text: str) -> str:
        """A piece of a block's text for the client."""
        lead = self.break_before(text)
        if lead:
            self._breaks[index] = lead
        return lead + text

    def _start(self, index: int, block: Any) -> None:
        self._blocks[index] = dict(block)
        if block.get("type") == "tool_use" and self.is_call(block):
            return
        self.has_client_calls = self.has_client_calls or block.get("type") == "tool_use"
        self._new_index[index] = self._next
        self._next += 1

    def _real_blocks(self) -> list[Any]:
        blocks = [_finished(self._blocks[index]) for index in sorted(self._blocks)]
        self.recalls = [b for b in blocks if b.get("type") == "tool_use" and self.is_call(b)]
        return [b for b in blocks if not (b.get("type") == "text" and not b.get("text"))]

    def _for_client(self) -> list[Any]:
        blocks = []
        for index in sorted(self._new_index):
            block = _finished(self._blocks[index])
            if lead := self._breaks.get(index):
                block["text"] = lead + block["text"]
            blocks.append(block)
        return blocks

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._head = tree
        self._usage = self.added(self._usage, tree.get("usage"))
        for index, block in enumerate(tree.get("content") or ()):
            self._start(index, block)
            if block.get("type") == "text":
                self._broken(index, block.get("text") or "")
        self._real_blocks()

    def real(self) -> list[Any]:
        """One message."""
        return [{"role": "assistant", "content": self._real_blocks()}]

    def visible(self) -> list[Any]:
        """One message."""
        return [{"role": "assistant", "content": [*self._before, *self._for_client()]}]

    def end(self) -> bytes:
        """``message_delta`` with what all rounds cost, and ``message_stop``."""
        parts = []
        for tree in self._end:
            if tree["type"] == "message_delta":
                self._usage = self.added(self._usage, self._usage_of(tree))
                tree = {**tree, "usage": self._usage}
                delta = tree.get("delta") or {}
                if delta.get("stop_reason") == "tool_use" and not self.has_client_calls:
                    tree["delta"] = {**delta, "stop_reason": "end_turn"}
            parts.append(sse(tree, tree["type"]))
        return b"".join(parts)

    def failed(self, failure: SaidError) -> bytes:
        """The event ``error``."""
        error = {"type": failure.kind, "message": failure.message}
        return sse({"type": "error", "error": error}, "error")

    def discard_round_end(self) -> None:
        """Another round comes: its end is not this one's."""
        for tree in self._end:
            self._usage = self.added(self._usage, self._usage_of(tree))

    def _usage_of(self, tree: Any) -> Any:
        """The usage in an event; the prompt that the round began with is a part of its sum."""
        opening, usage = self._opening_usage, tree.get("usage")
        if not (self.sums_prompts and isinstance(opening, dict) and isinstance(usage, dict)):
            return usage
        self._opening_usage = None
        return {**opening, **usage}

    def answer(self) -> Any:
        """The last round's message with what all rounds said."""
        message = {
            **self._head,
            "content": [*self._before, *self._for_client()],
            "usage": self._usage,
        }
        if message.get("stop_reason") == "tool_use" and not self.has_client_calls:
            message["stop_reason"] = "end_turn"
        return message


def _grow(block: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta.get("text", "")
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.get("thinking", "")
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta.get("signature", "")
        case "input_json_delta":
            block["_json"] = block.get("_json", "") + delta.get("partial_json", "")
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its input parsed."""
    finished = {key: value for key, value in block.items() if key != "_json"}
    if "_json" in block:
        try:
            finished["input"] = json.loads(block["_json"] or "{}")
        except ValueError:
            finished["input"] = {}
    return finished
