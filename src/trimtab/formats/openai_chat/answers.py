"""Answers of Chat Completions, whole and in chunks."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.answers import AnswerError, AnswerTable, UsageKeys
from trimtab.formats.engine.parts import value_at
from trimtab.formats.engine.rewriter import AnswerRewriter, loads, sse
from trimtab.formats.engine.stream_events import StreamEvent
from trimtab.formats.openai_chat.parts import CALLS, PARTS

ANSWERS = AnswerTable(
    parts=("choices", 0, "message"),
    tokens=UsageKeys(
        "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens",
        details="prompt_tokens_details",
    ),
    stop="finish_reason",
    stops=("tool_calls", "stop"),
    structured=((("response_format", "type"), ("json_object", "json_schema")),),
)  # fmt: skip


class OpenAIChatRewriter(AnswerRewriter):
    """Texts of all rounds are one text; calls keep their order without ours."""

    answers, table = ANSWERS, PARTS

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, Any] = {}
        """What every chunk says of the answer."""

    def _clear(self) -> None:
        super()._clear()
        self._message: dict[str, Any] = {"role": "assistant"}
        self._lead = ""
        """What is before the text of this round, for the client."""

    def is_ours(self, part: Any) -> bool:
        """Whether this is a call of one of our tools."""
        return value_at(part, self.table.part(CALLS, part)[1].name) in self.ours

    @property
    def _calls(self) -> list[Any]:
        return self._message.get("tool_calls") or []

    @property
    def recalls(self) -> list[Any]:
        """The calls of our tools in this round."""
        return [call for call in self._calls if self.is_ours(call)]

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one chunk."""
        tree = loads(event)
        if tree is None:
            return self._unread(event)
        if not self._first:
            self._first = {key: tree[key] for key in ("id", "created", "model") if key in tree}
        choices = tree.get("choices") or []
        if not choices or choices[0].get("finish_reason"):
            self._end.append(("", tree))
        delta = self._filtered(choices[0].get("delta") or {}) if choices else {}
        if not delta:
            return b""
        rest = {key: value for key, value in tree.items() if key != "usage" or value is None}
        shown = {**choices[0], "delta": delta, "finish_reason": None}
        return sse({**rest, **self._first, "choices": [shown]})

    def _filtered(self, delta: dict[str, Any]) -> dict[str, Any]:
        """The delta without our calls; what it says is taken in."""
        for key, value in delta.items():
            if isinstance(value, str) and key != "role":
                self._message[key] = self._message.get(key, "") + value
            elif isinstance(value, list) and key != "tool_calls":
                self._message[key] = [*self._message.get(key, []), *value]
        kept = {key: value for key, value in delta.items() if key != "tool_calls"}
        if isinstance(text := kept.get("content"), str):
            kept["content"] = self._led(text)
        if self._rounds > 1:
            kept.pop("role", None)
        calls = [row for row in map(self._call, delta.get("tool_calls") or ()) if row]
        if calls:
            kept["tool_calls"] = calls
        empty = not any(value not in (None, "") for value in kept.values())
        return {} if empty and self._rounds > 1 else kept

    def _led(self, text: str) -> str:
        """A piece of the text for the client."""
        lead = self.break_before(text)
        self._lead = self._lead or lead
        return lead + text

    def _call(self, piece: dict[str, Any]) -> dict[str, Any] | None:
        index = piece.get("index", 0)
        calls = self._message.setdefault("tool_calls", [])
        while len(calls) <= index:
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = calls[index], piece.get("function") or {}
        call["id"] = piece.get("id") or call["id"]
        for key in ("name", "arguments"):
            call["function"][key] += function.get(key) or ""
        for key in piece.keys() - {"index", "id", "type", "function"}:
            call[key] = piece[key]
        if index not in self._parts:  # its name came
            self._parts[index] = call
            if not self.is_ours(call):
                self._new_index[index], self.has_client_calls = len(self._new_index), True
        return {**piece, "index": self._new_index[index]} if index in self._new_index else None

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._first, self._usage = tree, self.added(self._usage, tree.get("usage"))
        self._message = dict(value_at(tree, self.answers.parts) or {})
        if isinstance(text := self._message.get("content"), str):
            self._led(text)
        self.has_client_calls = len(self._calls) > len(self.recalls)

    def real(self) -> list[Any]:
        """One message."""
        return [{**self._message, "content": self._message.get("content") or None}]

    def _for_client(self) -> list[Any]:
        calls = [call for call in self._calls if not self.is_ours(call)]
        rest = {key: value for key, value in self._message.items() if key != "tool_calls"}
        if self._lead:
            rest["content"] = self._lead + rest["content"]
        return [{**rest, "tool_calls": calls} if calls else rest]

    def visible(self) -> list[Any]:
        """One message: the texts of all rounds, the calls of the last."""
        *before, last = self._shown()
        text = "".join(str(one.get("content") or "") for one in (*before, last))
        return [{**last, "content": text or None}]

    def _ended(self, name: str, tree: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The reason to stop, or what all rounds cost."""
        last = {**tree, **self._first}
        if last.get("choices"):
            last["choices"] = [self._stopped({**last["choices"][0], "delta": {}})]
        if last.get("usage"):
            self._add_cost(last)
            last["usage"] = self._usage
        return last, name

    def failed(self, failure: AnswerError) -> bytes:
        """A chunk with nothing but an error."""
        error = {"message": failure.message, "type": failure.kind, "code": failure.kind}
        return sse({"error": error})

    def answer(self) -> Any:
        """The last round's answer with what all rounds said."""
        choice = {**(self._first.get("choices") or [{}])[0], "message": self.visible()[0]}
        return {**self._first, "choices": [self._stopped(choice)], "usage": self._usage}
