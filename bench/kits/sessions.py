"""Recorded sessions as OpenAI-chat messages, and what each library makes of one at a window."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import trimtab

BENCH = Path(__file__).resolve().parents[1]
sys.path.append(str(BENCH / "peers"))

import run as peers  # noqa: E402
import worker  # noqa: E402

Message = dict[str, Any]
MODEL = "gpt-5"
"""Whose tokens are counted (o200k)."""
WINDOW = 32_000
SIZES = range(int(1.3 * WINDOW), 130_000)
"""Tokens of the sessions taken: they outgrow the window; and not hours of work."""
SOURCES = ("agentv", "context-evaluator", "entire-cli", "entire-skills", "oh-my-posh")
EACH = 1
"""Sessions of each source: the first of these sizes in which the user speaks at least three times.
"""
OTHERS = {
    "LangChain ClearToolUsesEdit": "langchain-clear",
    "LangChain SummarizationMiddleware": "langchain-summarize",
    "deepagents summarization": "deepagents",
    "Strands sliding window": "strands-sliding",
    "Strands summarizing": "strands-summarizing",
    "LiteLLM compress": "litellm-compress",
    "headroom compress": "headroom",
}
"""Row of bench/peers/run.py → its name in worker.py there."""
KEYS = {"openai-responses": "input"}


@dataclass(frozen=True)
class Session:
    """A conversation up to its last model call.  ``name``: where it is from."""

    name: str
    messages: list[Message]


def folder() -> Path:
    """Where the transcripts are."""
    named = os.environ.get("TRIMTAB_DATA")
    return Path(named) if named else BENCH.parents[1] / "shared" / "data"


def sessions() -> list[Session]:
    """The sessions that are measured."""
    found = list[Session]()
    for source in SOURCES:
        own = list[Session]()
        with gzip.open(folder() / f"{source}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if record["meta"]["stats"]["tokens_o200k"] not in SIZES:
                    continue
                messages = list(_chat(record))
                if sum(message["role"] == "user" for message in messages) >= 3:
                    own.append(Session(f"{source} {len(own) + 1}", messages))
                if len(own) == EACH:
                    break
        found += own
    return found


def _chat(record: dict[str, Any]) -> Iterator[Message]:
    """Its messages in OpenAI's chat format, texts as strings, up to the last of a tool or the
    user."""
    body = {KEYS.get(record["format"], "messages"): record["messages"]}
    done = trimtab.convert(body, "openai-chat", format=record["format"], model=record["model"])
    messages: list[Message] = done.request["messages"]
    while messages and messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    for message in messages:
        plain, content = dict(message), message.get("content")
        if isinstance(content, list):
            plain["content"] = "\n".join(_parts(content))
        if "tool_calls" in message:
            plain["tool_calls"] = [_function(call) for call in message["tool_calls"]]
        yield plain


def _function(call: Message) -> Message:
    """A call of a custom tool as one of a function: LangChain raises on the former."""
    if "custom" not in call:
        return call
    arguments = json.dumps({"input": call["custom"]["input"]})
    function = {"name": call["custom"]["name"], "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function}


def _parts(content: Sequence[Message]) -> Iterator[str]:
    return (str(part.get("text") or "") for part in content)


def texts(message: Message) -> Iterator[str]:
    """What the model reads of a message: its text, the values of its calls' arguments."""
    content = message.get("content") or ""
    yield from _parts(content) if isinstance(content, list) else [str(content)]
    for call in message.get("tool_calls") or ():
        yield from _values(json.loads(call["function"]["arguments"] or "{}"))


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _values(one)
    else:
        yield str(value)


# --- what is made of them ---


class Sent(NamedTuple):
    """``messages``: what is left, in OpenAI's chat format, nothing where the library gave up;
    ``is_accepted``: whether it keeps the rules of the provider that it was made for."""

    messages: list[Message]
    is_accepted: bool


def _chat_request(messages: list[Message]) -> Sent:
    is_accepted = bool(messages) and not trimtab.check({"model": MODEL, "messages": messages})
    return Sent(messages, is_accepted)


class Trimtab:
    """Default settings, without an output reserve."""

    name = "trimtab"

    def __call__(self, messages: list[Message]) -> Sent:
        fitted = trimtab.fit({"model": MODEL, "messages": messages}, WINDOW, reserve=0)
        return _chat_request(fitted.request["messages"])


class Newest:
    """conpact's baseline: the newest five messages."""

    name = "newest 5 messages (conpact's Recent-5)"

    def __call__(self, messages: list[Message]) -> Sent:
        return _chat_request(messages[-5:])


class OwnCompaction:
    """What coding agents do, simulated over the calls of the session: at 90 % of the window all
    that was said becomes a summary, a fixed text, in a message of the user."""

    name = "an agent's own compaction, simulated"

    def __call__(self, messages: list[Message]) -> Sent:
        lead = [message for message in messages if message["role"] == "system"]
        kept, size = list[Message](), tokens(lead)
        for message, after in zip(messages, [*messages[1:], None], strict=True):
            if message["role"] == "system":
                continue
            kept.append(message)
            size += tokens([message])
            is_sent = after is None or after["role"] == "assistant"
            if is_sent and size > worker.TRIGGER * WINDOW:
                kept = [{"role": "user", "content": worker.SUMMARY}]
                size = tokens([*lead, *kept])
        return _chat_request([*lead, *kept])


class Peer:
    """Another library, in its environment and process, called once for each conversation."""

    def __init__(self, row: str) -> None:
        peer = next(one for one in peers.PEERS if one.name == row)
        if failed := peers.install(peer):
            raise RuntimeError(f"{row} cannot be installed: {failed}")
        self.name = f"{row} {peers.version(peer, peer.packages[0])}"
        self._format = peer.options[peer.options.index("--format") + 1]
        path = os.pathsep.join([str(BENCH.parent / "src"), str(peers.TARGETS)])
        self._process = subprocess.Popen(
            [str(peers.python_of(peer)), str(Path(__file__).with_name("peer_worker.py")),
             OTHERS[row], str(WINDOW)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    def __call__(self, messages: list[Message]) -> Sent:
        if self._format == "openai-chat":
            return _chat_request(self._asked(messages))
        names = {call["function"]["name"] for one in messages for call in one.get("tool_calls", ())}
        tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
                 for name in sorted(names)]  # fmt: skip
        body = {"model": MODEL, "messages": messages, "tools": tools}
        request = trimtab.convert(body, self._format).request
        if not (kept := self._asked(request["messages"])):
            return Sent([], False)
        sent = {**request, "messages": kept}
        back = trimtab.convert(sent, "openai-chat", format=self._format, model=MODEL)
        return Sent(back.request["messages"], not trimtab.check(sent, format=self._format))

    def _asked(self, messages: list[Message]) -> list[Message]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(messages) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            print(f"{self.name}: {answer['error']}", file=sys.stderr)
            return []
        return [messages[one] if isinstance(one, int) else one for one in answer["messages"]]


def libraries() -> Iterator[Any]:
    """Each as a function of the messages; a line on standard error where one is not there."""
    yield from (Trimtab(), Newest(), OwnCompaction())
    for row in OTHERS:
        try:
            yield Peer(row)
        except RuntimeError as error:
            print(error, file=sys.stderr)


def fits(messages: Sequence[Message]) -> bool:
    """Whether something is left, and within the window."""
    return bool(messages) and tokens(messages) <= WINDOW


def tokens(messages: Sequence[Message]) -> int:
    """As trimtab counts them."""
    return trimtab.count_tokens({"model": MODEL, "messages": list(messages)})
