"""Rewrites OpenAI Chat Completions answers of several rounds into one; answers with one choice."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.rounds.stream_rewriter import RewriterBase, SaidError, loads, sse


class OpenAIChatRewriter(RewriterBase):
    """Texts of all rounds are one text; calls keep their order without the recalls."""

    def __init__(self) -> None:
        super().__init__("openai-chat")
        self.recalls: list[Any] = []
        self.has_client_calls = False
        self._rounds = 0
        self._first: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._before: list[dict[str, Any]] = []
        self._break = ""
        """What stands before the text of this round, for the client."""
        self._new_index: dict[int, int] = {}
        self._hidden: set[int] = set()
        self._end: list[Any] = []
        self._done = b""

    def begin(self) -> None:
        """Begin a round."""
        if self._rounds:
            self._before.append(self._for_client())
        self._rounds += 1
        self.recalls, self.has_client_calls, self._end = [], False, []
        self._message, self._new_index, self._hidden = {"role": "assistant"}, {}, set()
        self._break = ""
        self.begin_text()

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree = loads(event)
        if tree is None:
            if event.data.strip() == b"[DONE]":
                self._done = event.raw
                return b""
            return event.raw
        if not self._first:
            self._first = {key: tree[key] for key in ("id", "created", "model") if key in tree}
        choices = tree.get("choices") or []
        if not choices or choices[0].get("finish_reason"):
            self._end.append(tree)
            if not choices:
                return b""
        delta = self._filtered(choices[0].get("delta") or {})
        if choices[0].get("finish_reason") or not delta:
            return self._chunk(tree, choices[0], delta, None) if delta else b""
        return self._chunk(tree, choices[0], delta, choices[0].get("finish_reason"))

    def _chunk(self, tree: Any, choice: Any, delta: Any, reason: Any) -> bytes:
        shown = {**choice, "delta": delta, "finish_reason": reason}
        rest = {key: value for key, value in tree.items() if key != "usage" or value is None}
        return sse({**rest, **self._first, "choices": [shown]})

    def _filtered(self, delta: dict[str, Any]) -> dict[str, Any]:
        """The delta without recall calls; what it says is taken in."""
        for key, value in delta.items():
            if isinstance(value, str) and key != "role":
                self._message[key] = self._message.get(key, "") + value
            elif isinstance(value, list) and key != "tool_calls":
                self._message[key] = [*self._message.get(key, []), *value]
        kept = {key: value for key, value in delta.items() if key != "tool_calls"}
        if isinstance(text := kept.get("content"), str):
            kept["content"] = self._broken(text)
        if self._rounds > 1:
            kept.pop("role", None)
        calls = [row for row in map(self._call, delta.get("tool_calls") or ()) if row]
        if calls:
            kept["tool_calls"] = calls
        empty = not any(value not in (None, "") for value in kept.values())
        return {} if empty and self._rounds > 1 else kept

    def _broken(self, text: str) -> str:
        """A piece of the text for the client."""
        lead = self.break_before(text)
        self._break = self._break or lead
        return lead + text

    def _call(self, piece: dict[str, Any]) -> dict[str, Any] | None:
        index = piece.get("index", 0)
        calls = self._message.setdefault("tool_calls", [])
        while len(calls) <= index:
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call, said = calls[index], piece.get("function") or {}
        call["id"] = piece.get("id") or call["id"]
        for key in ("name", "arguments"):
            call["function"][key] += said.get(key) or ""
        for key in piece.keys() - {"index", "id", "type", "function"}:
            call[key] = piece[key]
        if index not in self._new_index and index not in self._hidden:
            if self.is_call(call):
                self._hidden.add(index)
            else:
                self._new_index[index], self.has_client_calls = len(self._new_index), True
        return {**piece, "index": self._new_index[index]} if index in self._new_index else None

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._first, self._usage = tree, self.added(self._usage, tree.get("usage"))
        choice = (tree.get("choices") or [{}])[0]
        self._message = dict(choice.get("message") or {})
        if isinstance(text := self._message.get("content"), str):
            self._broken(text)
        self.recalls = [c for c in self._message.get("tool_calls") or () if self.is_call(c)]
        self.has_client_calls = len(self._message.get("tool_calls") or ()) > len(self.recalls)

    def real(self) -> list[Any]:
        """One message."""
        calls = self._message.get("tool_calls") or []
        self.recalls = [call for call in calls if self.is_call(call)]
        return [{**self._message, "content": self._message.get("content") or None}]

    def _for_client(self) -> dict[str, Any]:
        calls = [c for c in self._message.get("tool_calls") or () if not self.is_call(c)]
        rest = {key: value for key, value in self._message.items() if key != "tool_calls"}
        if self._break:
            rest["content"] = self._break + rest["content"]
        return {**rest, "tool_calls": calls} if calls else rest

    def visible(self) -> list[Any]:
        """One message: the texts of all rounds, the calls of the last."""
        last = self._for_client()
        said = "".join(str(one.get("content") or "") for one in (*self._before, last))
        return [{**last, "content": said or None}]

    def end(self) -> bytes:
        """The reason to stop, what all rounds cost, and ``[DONE]``."""
        parts = []
        for tree in self._end:
            last = {**tree, **self._first}
            if last.get("choices"):
                choice = {**last["choices"][0], "delta": {}}
                if choice.get("finish_reason") == "tool_calls" and not self.has_client_calls:
                    choice["finish_reason"] = "stop"
                last["choices"] = [choice]
            if last.get("usage"):
                self._usage = self.added(self._usage, last["usage"])
                last["usage"] = self._usage
            parts.append(sse(last))
        return b"".join((*parts, self._done))

    def failed(self, failure: SaidError) -> bytes:
        """A chunk with nothing but an error."""
        error = {"message": failure.message, "type": failure.kind, "code": failure.kind}
        return sse({"error": error})

    def discard_round_end(self) -> None:
        """Drop the end of this round, as another one follows."""
        for tree in self._end:
            self._usage = self.added(self._usage, tree.get("usage"))

    def answer(self) -> Any:
        """The last round's answer with what all rounds said."""
        choice = {**(self._first.get("choices") or [{}])[0], "message": self.visible()[0]}
        if choice.get("finish_reason") == "tool_calls" and not self.has_client_calls:
            choice["finish_reason"] = "stop"
        return {**self._first, "choices": [choice], "usage": self._usage}
