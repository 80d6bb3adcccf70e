"""Providers that compact by themselves, written from their pages and SDK types alone.

Anthropic: by threshold (``compact_20260112``) and on demand (``compaction``: a signed block, first
in ``messages``).  OpenAI Responses: ``context_management`` of type ``compaction``.  What they
refuse is decided here: of the library nothing is imported but the server that listens.  The least
trigger is left out, so that conversations can be short.
"""

from __future__ import annotations

import hmac
import json
import random
from dataclasses import dataclass, field
from typing import Any

import judge
import judge_responses
import sizes

from trimtab_lab.testing.http_apis.server import LocalServer, Response

KEY = b"the provider's own"


def seal(*parts: Any) -> str:
    """A signature over these values."""
    data = json.dumps(parts, sort_keys=True).encode()
    return hmac.digest(KEY, data, "sha256").hex() * 4


@dataclass
class Asked:
    """One request as it arrived: what was live, what was refused ("" where nothing)."""

    body: Any
    live: int = 0
    refusal: str = ""
    blocks: list[Any] = field(default_factory=list)


class Compacting(LocalServer):
    """Answers with a call, or with words every few turns; ``window`` in its own tokens."""

    def __init__(self, window: int, seed: int = 0) -> None:
        super().__init__()
        self.window, self.asked = window, list[Asked]()
        self._draw = random.Random(seed)

    def respond(self, method: str, path: str, query: str, headers: Any, body: bytes) -> Response:
        """Anthropic at ``…/messages``, Responses at ``…/responses`` and ``…/responses/compact``."""
        asked = json.loads(body)
        if path.endswith("/compact"):
            asked["compact"] = True
        status, answer = self.answer(asked, "/responses" in path)
        data = json.dumps(answer).encode()
        return Response(status, (("content-type", "application/json"),), (data,))

    def answer(self, body: Any, responses: bool = False) -> tuple[int, Any]:
        """Status and body of the answer."""
        asked = Asked(body)
        self.asked.append(asked)
        judged = _openai(body, asked) if responses else _anthropic(body, asked)
        if judged:
            asked.refusal = judged[0]
            return 400, _refusal(*judged)
        if asked.live > self.window:
            asked.refusal = "too long"
            said = f"prompt is too long: {asked.live} tokens > {self.window} maximum"
            return 400, _refusal("too long", said)
        return 200, (self._openai(body, asked) if responses else self._anthropic(body, asked))

    # --- answers -----------------------------------------------------------------------------

    def _next(self) -> tuple[str, str]:
        number = len(self.asked)
        return (
            ("call", f"{number:04}") if self._draw.random() < 0.8 else ("text", f"Done {number}.")
        )

    def _anthropic(self, body: Any, asked: Asked) -> Any:
        steps, content, stop = [], list[Any](), "end_turn"
        used = {"input_tokens": asked.live, "output_tokens": 20}
        if body.get("compaction"):
            content = [_signed(f"Summary {len(self.asked)}: {asked.live} tokens were read.")]
            return _message(content, "compaction", used)
        trigger = _trigger(body)
        if trigger is not None and asked.live > trigger:
            summary = f"Summary {len(self.asked)}. The user wants the parser mended."
            content.append({"type": "compaction", "content": summary,
                            "encrypted_content": seal(summary)})  # fmt: skip
            steps = [{"type": "compaction", **used}]
            used = {"input_tokens": 400, "output_tokens": 20}
        kind, said = self._next()
        if kind == "call":
            stop = "tool_use"
            content.append({"type": "text", "text": "I read on."})
            content.append({"type": "tool_use", "id": f"toolu_{said}", "name": "read",
                            "input": {"path": f"{said}.py"}})  # fmt: skip
        else:
            content.append({"type": "text", "text": said})
        if steps:
            used = {**used, "iterations": [*steps, {"type": "message", **used}]}
        return _message(content, stop, used)

    def _openai(self, body: Any, asked: Asked) -> Any:
        if body.get("compact"):
            return self._window(body, asked)
        output: list[Any] = []
        rows = body.get("context_management") or []
        trigger = next((row["compact_threshold"] for row in rows), None)
        number = len(self.asked)
        if trigger is not None and asked.live > trigger:
            output.append({"type": "compaction", "id": f"cmp_{number}",
                           "encrypted_content": seal("cmp", number)})  # fmt: skip
        kind, said = self._next()
        if kind == "call":
            output.append({"type": "function_call", "id": f"fc_{said}", "call_id": f"call_{said}",
                           "name": "read", "arguments": "{}", "status": "completed"})  # fmt: skip
        else:
            part = {"type": "output_text", "text": said, "annotations": []}
            output.append({"type": "message", "id": f"msg_{number}", "role": "assistant",
                           "status": "completed", "content": [part]})  # fmt: skip
        usage = {"input_tokens": asked.live, "output_tokens": 20, "total_tokens": asked.live + 20}
        return {"id": f"resp_{number}", "object": "response", "status": "completed", "error": None,
                "model": body.get("model"), "output": output, "usage": usage}  # fmt: skip

    def _window(self, body: Any, asked: Asked) -> Any:
        """A whole window out of a window: the user's words, and one compaction behind them."""
        number, said = len(self.asked), [i for i in body["input"] if i.get("role") == "user"]
        item = {"type": "compaction", "id": f"cmp_{number}",
                "encrypted_content": seal("cmp", number)}  # fmt: skip
        return {"id": f"resp_{number}", "object": "response.compaction", "created_at": 1,
                "output": [*said, item],
                "usage": {"input_tokens": asked.live, "output_tokens": 20}}  # fmt: skip


def _signed(summary: str) -> Any:
    return {"type": "compaction", "content": summary, "signature": seal(summary, []),
            "encrypted_content": seal("opaque", summary), "tool_changes": []}  # fmt: skip


def _message(content: list[Any], stop: str, usage: Any) -> Any:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
            "content": content, "stop_reason": stop, "stop_sequence": None,
            "usage": {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                      **usage}}  # fmt: skip


def _refusal(code: str, said: str) -> Any:
    details = {"error_code": code} if code.startswith("compaction") else None
    error = {"type": "invalid_request_error", "message": said, "details": details, "code": None}
    return {"type": "error", "error": error, "request_id": "req_1"}


def _trigger(body: Any) -> int | None:
    edits = (body.get("context_management") or {}).get("edits") or []
    return next((e["trigger"]["value"] for e in edits if e["type"] == "compact_20260112"), None)


# --- what is refused --------------------------------------------------------------------------


def _anthropic(body: Any, asked: Asked) -> tuple[str, str] | None:
    if body.get("compaction") and body.get("context_management"):
        return "exclusive", "compaction: not together with context_management"
    found = [
        (number, index, message["role"], part)
        for number, message in enumerate(body["messages"])
        for index, part in enumerate(message["content"] if type(message["content"]) is list else [])
        if part["type"] == "compaction"
    ]
    asked.blocks = [part for *_, part in found]
    for _, _, role, part in found:
        if part.get("content") == "":
            return "empty", "compaction.content: must not be empty"
        if role == "system":
            return "compaction_block_misplaced", "The block is in a system message"
        if part.get("content") is None:
            continue
        if "signature" not in part:
            if part["encrypted_content"] != seal(part["content"]):
                return "compaction_content_mismatch", "The content differs from what was returned"
        elif part["encrypted_content"] != seal("opaque", part["content"]):
            return "compaction_content_mismatch", "The content differs from what was signed"
        elif part.get("tool_changes") != []:
            return "compaction_tool_changes_mismatch", "tool_changes differ from what was returned"
        elif part["signature"] != seal(part["content"], []):
            return "compaction_signature_invalid", "The signature does not verify"
    told = [row for row in found if row[3].get("content")]
    signed = [row for row in told if "signature" in row[3]]
    if len(signed) > 1:
        return "compaction_block_ambiguous", "More than one compaction block with content"
    if signed and signed[0][:2] != (0, 0):
        return "compaction_block_misplaced", "The block is not the first of the conversation"
    return _live(body, asked, told)


def _live(body: Any, asked: Asked, told: list[Any]) -> tuple[str, str] | None:
    """The rules and the size of what is behind the newest block."""
    messages, summary = body["messages"], 0
    if told:
        number, index, _, part = told[-1]
        rest = messages[number]["content"][index + 1 :]
        own = [{**messages[number], "content": rest}] if rest else []
        messages = [*own, *messages[number + 1 :]]
        summary = sizes.o200k()(part["content"]) + (0 if rest else sizes.MESSAGE_TOKENS)
        begin = [{"role": "user", "content": "."}]
    else:
        begin = []
    live = {**body, "messages": messages}
    asked.live = sizes.tokens(live, "anthropic") + summary
    wrong = judge.problems({**live, "messages": [*begin, *messages]}, "anthropic")
    if wrong and not (body.get("compaction") and wrong == [w for w in wrong if "prefill" in w]):
        return "rule", wrong[0]
    return None


def _openai(body: Any, asked: Asked) -> tuple[str, str] | None:
    items = body["input"]
    found = [n for n, item in enumerate(items) if item.get("type") == "compaction"]
    asked.blocks = [items[n] for n in found]
    for item in asked.blocks:
        if item["encrypted_content"] != seal("cmp", int(item["id"].removeprefix("cmp_"))):
            return "invalid_encrypted_content", "The encrypted content could not be verified"
    if body.get("compact") and body.keys() - {"compact", "model", "input", "instructions"}:
        return "unknown_parameter", "Unknown parameter"
    wrong = judge_responses.problems(body)
    if wrong:
        return "rule", wrong[0]
    start = found[-1] if found else 0
    if all(item.get("role") == "user" for item in items[:start]):
        start = 0  # a window that was made so: the user's words in it are read
    asked.live = judge_responses.tokens({**body, "input": items[start:]})
    return None
