"""Runs inside another library's environment: JSON lines in, JSON lines out.

Each library is called with the settings its documentation recommends: started as
``python worker.py NAME WINDOW``.  Each line is ``{"add": [messages]}``, the messages that are new
since the previous line, the first one with ``"head"``, the rest of the body; each answer is
``{"messages": [index or message …], "seconds": …, "calls": [[in, out] …], "originals": {…}}`` or
``{"error": "…"}``.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

TRIGGER = 0.9
"""Share of the window given to libraries that have a trigger."""
KEEP_MESSAGES = 20
SUMMARY = "The work so far was summarized here by a model that is not run in this replay. " * 20
"""A fixed summary of about 300 words: only its cost is measured, not its content."""

Messages = list[dict[str, Any]]
Shrink = Callable[[Messages], dict[str, Any]]


class Count:
    """o200k tokens of all strings, + 4 a message, + 10 a call or result: as in the replay."""

    def __init__(self) -> None:
        self._encode = import_module("splintr").Tokenizer.from_pretrained("o200k_base").encode_flat
        self._known: dict[str, int] = {}

    def text(self, text: str) -> int:
        count = self._known.get(text)
        if count is None:
            count = self._known[text] = len(self._encode(text)) // 4
        return count

    def lang_chain(self, messages: Any) -> int:
        """Tokens of a list of LangChain messages, or of one."""
        total = 0
        for message in messages if isinstance(messages, list) else [messages]:
            content = message.content
            parts = [content] if isinstance(content, str) else [
                p if isinstance(p, str) else str(p.get("text", "")) for p in content
            ]  # fmt: skip
            total += 4 + sum(map(self.text, parts)) + (10 if message.type == "tool" else 0)
            for call in getattr(message, "tool_calls", None) or ():
                arguments = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))
                total += 10 + self.text(call["name"]) + self.text(arguments)
        return total


class _LangChain:
    """Converts each message once and hands the library its own objects."""

    def __init__(self) -> None:
        self.core = import_module("langchain_core.messages")
        self.made: list[Any] = []
        self.count = Count()

    def read(self, messages: Messages) -> list[Any]:
        fresh = _functions(messages[len(self.made) :])
        if fresh:
            self.made += self.core.convert_to_messages(fresh)
        return self.made

    def write(self, chosen: list[Any], messages: Messages) -> list[Any]:
        """``chosen`` as indexes of unchanged messages, and OpenAI messages for the others."""
        numbers = {id(made): number for number, made in enumerate(self.made)}
        return [
            numbers[id(m)] if id(m) in numbers else self.core.convert_to_openai_messages(m)
            for m in chosen
        ]


def _functions(messages: Messages) -> Messages:
    """Copies whose custom tools' calls are calls of functions: LangChain reads no others."""
    copies = copy.deepcopy(messages)
    for call in (one for message in copies for one in message.get("tool_calls") or ()):
        if custom := call.pop("custom", None):
            arguments = json.dumps({"input": custom["input"]})
            call |= {"type": "function", "function": {**custom, "arguments": arguments}}
            del call["function"]["input"]
    return copies


def langchain_trim(window: int) -> Shrink:
    """``trim_messages`` as its documentation shows it."""
    chain = _LangChain()

    def shrink(messages: Messages) -> dict[str, Any]:
        made = chain.read(messages)
        before = time.process_time()
        kept = chain.core.trim_messages(
            made, max_tokens=window, token_counter=chain.count.lang_chain, strategy="last",
            start_on="human", end_on=("human", "tool"), include_system=True,
        )  # fmt: skip
        return {"seconds": time.process_time() - before, "messages": chain.write(kept, messages)}

    return shrink


def langchain_clear(window: int) -> Shrink:
    """``ClearToolUsesEdit`` as ``ContextEditingMiddleware`` applies it: on a deep copy."""
    chain = _LangChain()
    editing = import_module("langchain.agents.middleware.context_editing")
    edit = editing.ClearToolUsesEdit(trigger=int(TRIGGER * window))

    def shrink(messages: Messages) -> dict[str, Any]:
        made = chain.read(messages)
        before = time.process_time()
        edited = copy.deepcopy(made)
        edit.apply(edited, count_tokens=chain.count.lang_chain)
        seconds = time.process_time() - before
        kept = [old if old == new else new for old, new in zip(made, edited, strict=False)]
        kept = kept if len(kept) == len(edited) else edited
        return {"seconds": seconds, "messages": chain.write(kept, messages)}

    return shrink


def langchain_summarize(window: int) -> Shrink:
    """``SummarizationMiddleware`` with its state kept between calls, as a graph does."""
    chain = _LangChain()
    calls: list[tuple[int, int]] = []
    fake = import_module("langchain_core.language_models.fake_chat_models")

    class Stub(fake.FakeListChatModel):  # type: ignore[misc, name-defined]
        """Answers every prompt with the same summary and records the tokens of the call."""

        def _call(self, messages: Any, *rest: Any, **more: Any) -> str:
            calls.append((chain.count.lang_chain(list(messages)), chain.count.text(SUMMARY)))
            return SUMMARY

    middleware = import_module("langchain.agents.middleware").SummarizationMiddleware(
        Stub(responses=[SUMMARY]), trigger=("tokens", int(TRIGGER * window)),
        keep=("messages", KEEP_MESSAGES), token_counter=chain.count.lang_chain,
    )  # fmt: skip
    state: list[Any] = []
    taken = 0

    def shrink(messages: Messages) -> dict[str, Any]:
        nonlocal state, taken
        made = chain.read(messages)
        before = time.process_time()
        calls.clear()
        state, taken = [*state, *made[taken:]], len(made)
        update = middleware.before_model({"messages": state}, None)
        if update is not None:
            state = [m for m in update["messages"] if m.type != "remove"]
        seconds = time.process_time() - before
        return {"seconds": seconds, "messages": chain.write(state, messages), "calls": calls}

    return shrink


def _plain(call: Callable[[Messages], tuple[Messages, dict[str, str]]]) -> Shrink:
    """Wrap a library that takes and returns lists of dicts."""

    def shrink(messages: Messages) -> dict[str, Any]:
        copies = [_with_text(message) for message in _functions(messages)]
        numbers = {json.dumps(m, sort_keys=True): number for number, m in enumerate(copies)}
        before = time.process_time()
        kept, originals = call(copies)
        seconds = time.process_time() - before
        answered = [numbers.get(json.dumps(m, sort_keys=True, default=str), m) for m in kept]
        return {"seconds": seconds, "messages": answered, "originals": originals}

    return shrink


def _with_text(message: dict[str, Any]) -> dict[str, Any]:
    """``content: null`` beside calls as ``""``: litellm.compress raises on null."""
    return {**message, "content": ""} if message.get("content", "") is None else message


def litellm_trim(window: int) -> Shrink:
    """``litellm.utils.trim_messages`` with the window as ``max_tokens``."""
    trim = import_module("litellm.utils").trim_messages
    return _plain(lambda messages: (trim(messages, model="gpt-4o", max_tokens=window), {}))


def litellm_compress(window: int) -> Shrink:
    """``litellm.compress``: BM25; originals come back through its retrieval tool."""
    compress = import_module("litellm").compress

    def call(messages: Messages) -> tuple[Messages, dict[str, str]]:
        done = compress(
            messages, model="gpt-4o", compression_trigger=int(TRIGGER * window),
        )  # fmt: skip
        kept = {str(k): str(v) for k, v in (done.get("cache") or {}).items()}
        return done["messages"], kept

    return _plain(call)


def headroom(window: int) -> Shrink:
    """``headroom.compress`` with the window as ``model_limit``."""
    compress = import_module("headroom").compress

    def call(messages: Messages) -> tuple[Messages, dict[str, str]]:
        return compress(messages, model="gpt-4o", model_limit=window).messages, {}

    return _plain(call)


def _agent(target: str, format: str) -> Callable[[int], Shrink]:
    """A real agent of ``targets/``, as ``trimtab conform`` runs it: what its model is given."""

    def start(window: int) -> Shrink:
        conformance = import_module("trimtab_lab.testing.conformance")
        options = conformance.TargetOptions(window, factory=not target.startswith("langchain:"))
        conversation = conformance.open_target(target, options).conversation(format)

        def call(messages: Messages) -> tuple[Messages, dict[str, str]]:
            body = {**HEAD, "messages": _functions(messages)}
            return conversation.send(body).request["messages"], {}

        return _plain(call)

    return start


HEAD: dict[str, Any] = {}
"""The body of the recording without its messages."""

SHRINKERS = {
    "langchain-trim": langchain_trim,
    "langchain-clear": langchain_clear,
    "langchain-summarize": langchain_summarize,
    "litellm-trim": litellm_trim,
    "litellm-compress": litellm_compress,
    "headroom": headroom,
    "deepagents": _agent("langchain:deepagents_targets:middlewares", "openai-chat"),
    "strands-sliding": _agent("strands_targets:sliding", "bedrock"),
    "strands-summarizing": _agent("strands_targets:summarizing", "bedrock"),
}


def main() -> None:
    """Answer line by line; output that libraries print goes to standard error."""
    os.environ.update(HF_HUB_OFFLINE="1", LITELLM_LOCAL_MODEL_COST_MAP="True")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    shrink = SHRINKERS[sys.argv[1]](int(sys.argv[2]))
    with contextlib.suppress(Exception):  # so that loading on the first call is not timed
        SHRINKERS[sys.argv[1]](int(sys.argv[2]))([{"role": "user", "content": "hello"}])
    messages: Messages = []
    for line in sys.stdin:
        asked = json.loads(line)
        HEAD.update(asked.get("head") or {})
        messages += asked["add"]
        try:
            answer = shrink(messages)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
