"""Rewrites Bedrock Converse answers of several rounds into one."""

from __future__ import annotations

import json
from typing import Any, Self

from trimtab.formats.engine.aws_event_stream import event_frame, exception_frame
from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.rounds.stream_rewriter import RewriterBase, SaidError, dumped, loads, summed


class BedrockRewriter(RewriterBase):
    """Blocks get new indices: those of recall calls are left out, later rounds go on counting."""

    def __init__(self) -> None:
        super().__init__("bedrock")
        self.recalls: list[Any] = []
        self.has_client_calls = False
        self._rounds = self._next = 0
        self._blocks: dict[int, dict[str, Any]] = {}
        self._new_index: dict[int, int] = {}
        self._hidden: set[int] = set()
        self._breaks: dict[int, str] = {}
        """Block of this round → what stands before its text, for the client."""
        self._before: list[Any] = []
        self._end: list[tuple[str, Any]] = []
        self._last: dict[str, Any] = {}
        self._metrics: Any = None
        """Milliseconds of the rounds that are over."""

    def started_over(self) -> Self:
        """See ``StreamRewriter``."""
        fresh = super().started_over()
        fresh._metrics = self._metrics
        return fresh

    def begin(self) -> None:
        """Begin a round."""
        if self._rounds:
            self._before += self._for_client()
        self._rounds += 1
        self.recalls, self.has_client_calls, self._end = [], False, []
        self._blocks, self._new_index, self._hidden, self._breaks = {}, {}, set(), {}
        self.begin_text()

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree = loads(event)
        if tree is None or event.failed:
            return event.raw
        if event.name == "messageStart":
            return event.raw if self._rounds == 1 else b""
        if event.name in ("messageStop", "metadata"):
            self._end.append((event.name, tree))
            return b""
        index = tree.get("contentBlockIndex")
        if not isinstance(index, int):
            return event.raw
        self._grow(index, tree)
        if index in self._hidden:
            return b""
        if index not in self._new_index:
            self._new_index[index] = self._next
            self._next += 1
        if text := (tree.get("delta") or {}).get("text"):
            tree = {**tree, "delta": {**tree["delta"], "text": self._broken(index, text)}}
        return event_frame(
            event.name, dumped({**tree, "contentBlockIndex": self._new_index[index]})
        )

    def _broken(self, index: int, text: str) -> str:
        """A piece of a block's text for the client."""
        lead = self.break_before(text)
        if lead:
            self._breaks[index] = lead
        return lead + text

    def _grow(self, index: int, tree: Any) -> None:
        block = self._blocks.setdefault(index, {})
        use = (tree.get("start") or {}).get("toolUse")
        if isinstance(use, dict):
            block["toolUse"] = {**use, "input": ""}
            if self.is_call(block):
                self._hidden.add(index)
            else:
                self.has_client_calls = True
        delta = tree.get("delta") or {}
        if "text" in delta:
            block["text"] = block.get("text", "") + delta["text"]
        if isinstance(delta.get("toolUse"), dict):
            block["toolUse"]["input"] += delta["toolUse"].get("input", "")
        if isinstance(said := delta.get("reasoningContent"), dict):
            if "redactedContent" in said:
                block["reasoningContent"] = said
                return
            inside = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            for key, text in said.items():
                inside[key] = inside.get(key, "") + text

    def _all(self) -> list[Any]:
        blocks = [_finished(self._blocks[index]) for index in sorted(self._blocks)]
        self.recalls = [block for block in blocks if "toolUse" in block and self.is_call(block)]
        return [block for block in blocks if block and block.get("text") != ""]

    def _for_client(self) -> list[Any]:
        blocks = []
        for index in sorted(self._blocks.keys() - self._hidden):
            block = _finished(self._blocks[index])
            lead = self._breaks.get(index)
            blocks.append({**block, "text": lead + block["text"]} if lead else block)
        return blocks

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._last, self._usage = tree, self.added(self._usage, tree.get("usage"))
        self._metrics = summed(self._metrics, tree.get("metrics"))
        message = (tree.get("output") or {}).get("message") or {}
        for index, block in enumerate(message.get("content") or ()):
            self._blocks[index] = dict(block)
            self._broken(index, block.get("text") or "")
            if "toolUse" in block:
                if self.is_call(block):
                    self._hidden.add(index)
                else:
                    self.has_client_calls = True
        self._all()

    def real(self) -> list[Any]:
        """One message."""
        return [{"role": "assistant", "content": self._all()}]

    def visible(self) -> list[Any]:
        """One message."""
        return [{"role": "assistant", "content": [*self._before, *self._for_client()]}]

    def end(self) -> bytes:
        """``messageStop``, and ``metadata`` with what all rounds cost."""
        parts = []
        for name, tree in self._end:
            if name == "metadata":
                metrics = summed(self._metrics, tree.get("metrics"))
                tree = {**tree, "usage": self.added(self._usage, tree.get("usage"))}
                tree |= {"metrics": metrics} if metrics else {}
            elif tree.get("stopReason") == "tool_use" and not self.has_client_calls:
                tree = {**tree, "stopReason": "end_turn"}
            parts.append(event_frame(name, dumped(tree)))
        return b"".join(parts)

    def failed(self, failure: SaidError) -> bytes:
        """An exception as its SDK raises it."""
        names = {429: "throttlingException", 503: "serviceUnavailableException",
                 529: "serviceUnavailableException"}  # fmt: skip
        usual = "validationException" if failure.status < 500 else "internalServerException"
        error = dumped({"message": failure.message})
        return exception_frame(names.get(failure.status, usual), error)

    def discard_round_end(self) -> None:
        """Drop the end of this round, as another one follows."""
        for _, tree in self._end:
            self._usage = self.added(self._usage, tree.get("usage"))
            self._metrics = summed(self._metrics, tree.get("metrics"))

    def answer(self) -> Any:
        """The last answer with what all rounds said."""
        whole = {**self._last, "output": {"message": self.visible()[0]}, "usage": self._usage}
        whole |= {"metrics": self._metrics} if self._metrics else {}
        if whole.get("stopReason") == "tool_use" and not self.has_client_calls:
            whole["stopReason"] = "end_turn"
        return whole


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its input parsed."""
    use = block.get("toolUse")
    if not isinstance(use, dict) or not isinstance(use.get("input"), str):
        return block
    try:
        given = json.loads(use["input"] or "{}")
    except ValueError:
        given = {}
    return {**block, "toolUse": {**use, "input": given}}
