"""What is wrong with a session in whose answers we answered calls of our own: by its requests, by
what the model said and by what the client got.

Knows the wire formats and what docs/recall.md promises.  Shares no code with the rounds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trimtab.transcript.tokens import counter_for
from trimtab_lab.testing import Answer

OURS = frozenset(("recall", "note", "prune", "distill", "compress"))
MAX_ROUNDS = 6
MARK = re.compile(r"m_([tfnqpe][ab]_\d{5})")
"""t: said by the model, f: of a file, n: of a note, q: asked of us, p: a path, e: a lie; then the
tenant; then a number that comes once."""


COUNT = counter_for("o200k", model="", format="openai-chat")
PYTHON = re.compile(
    r"Traceback|NoneType|islice|maxsize|object has no|is not iterable|must be .*int"
)


@dataclass
class Exchange:
    """One request of the client: what the model was asked and said, and what the client got.

    ``records``: what the provider received; ``said``: what the script said to each, by its
    number, an ``Answer`` or a refusal; ``text``, ``calls`` (name, arguments), ``prompt``,
    ``output``: as the client got them; ``seen``: all of it; ``raised``: the error that it got in
    place of an answer.
    """

    tenant: str
    records: list[Any] = field(default_factory=list)
    said: dict[int, Any] = field(default_factory=dict)
    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    seen: str = ""
    prompt: int = 0
    output: int = 0
    raised: BaseException | None = None

    def rounds(self) -> list[tuple[Any, Answer]]:
        """The accepted requests and their answers."""
        pairs = ((record, self.said.get(record.number)) for record in self.records)
        return [(record, answer) for record, answer in pairs if isinstance(answer, Answer)]

    def refused(self) -> list[Any]:
        """The requests that the script itself refused."""
        said = [record for record in self.records if record.number in self.said]
        return [record for record in said if not isinstance(self.said[record.number], Answer)]


class Part(NamedTuple):
    """Of a request: ``kind`` is "text" (of the model), "call" or "result"."""

    kind: str
    id: str
    name: str
    value: Any


def parts_of(format: str, body: Any) -> Iterator[Part]:
    """What the model said, called and was answered."""
    for message in body.get("messages") or body.get("contents") or body.get("input") or ():
        if format == "openai-responses":
            yield from _of_item(message)
            continue
        role = message.get("role")
        if role == "tool":
            yield Part("result", message["tool_call_id"], "", message["content"])
        for call in message.get("tool_calls") or ():
            function = call["function"]
            yield Part("call", call["id"], function["name"], _json(function["arguments"]))
        content = message.get("content") or message.get("parts") or ()
        blocks = [{"text": content}] if isinstance(content, str) else content
        for block in blocks:
            if role in ("assistant", "model") and "text" in block and not block.get("thought"):
                yield Part("text", "", "", block["text"])
            yield from _of_block(block)


def _of_item(item: Any) -> Iterator[Part]:
    kind = item.get("type", "message")
    if kind == "function_call":
        yield Part("call", item["call_id"], item["name"], _json(item["arguments"]))
    elif kind == "function_call_output":
        yield Part("result", item["call_id"], "", item["output"])
    elif kind == "message" and item.get("role") == "assistant":
        content = item["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        yield from (Part("text", "", "", block["text"]) for block in blocks if "text" in block)


def _of_block(block: Any) -> Iterator[Part]:
    if block.get("type") == "tool_use":
        yield Part("call", block["id"], block["name"], block["input"])
    elif block.get("type") == "tool_result":
        yield Part("result", block["tool_use_id"], "", block.get("content"))
    elif use := block.get("toolUse"):
        yield Part("call", use["toolUseId"], use["name"], use["input"])
    elif result := block.get("toolResult"):
        yield Part("result", result["toolUseId"], "", result["content"])
    elif call := block.get("functionCall"):
        yield Part("call", call.get("id") or "", call["name"], call.get("args") or {})
    elif answer := block.get("functionResponse"):
        yield Part("result", answer.get("id") or "", answer["name"], answer["response"])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def faults(format: str, exchanges: list[Exchange], *, sums_prompts: bool) -> list[str]:
    """All that is wrong with a session, each with its letter in the command's list."""
    found, notes = list[str](), dict[str, dict[str, str]]()
    for number, exchange in enumerate(exchanges):
        kept = notes.setdefault(exchange.tenant, {})
        wrong = [
            *_seen(exchange),
            *_said(exchange),
            *_requests(format, exchange),
            *_usage(exchange, sums_prompts),
            *_notes(format, exchange, kept),
        ]
        found += [f"exchange {number}: {one}" for one in wrong]
    return found


def _seen(exchange: Exchange) -> Iterator[str]:
    ours = [name for name, _ in exchange.calls if name in OURS]
    if ours:
        yield f"a: the client got calls of {ours}"
    hidden = [mark for mark in MARK.findall(exchange.seen) if mark[0] in "nq"]
    if hidden or "no more recalls" in exchange.seen:
        yield f"a: the client got {hidden or 'what the model was told'}"


def _said(exchange: Exchange) -> Iterator[str]:
    rounds = exchange.rounds()
    if len(rounds) > MAX_ROUNDS:
        yield f"d: {len(rounds)} rounds"
    if exchange.raised is not None:
        if not exchange.refused() and not any(map(_too_long, exchange.records)):
            why = exchange.raised.__cause__
            yield f"b: raised where nothing was refused: {exchange.raised!r} of {why!r}"
        return
    if not rounds:
        yield "b: an answer that nobody gave"
        return
    said = [answer.text for _, answer in rounds if answer.text]
    if exchange.text.split() != " ".join(said).split():
        yield f"b: said {said}, the client got {exchange.text!r}"
    wanted = [(call.name, call.arguments) for call in rounds[-1][1].calls if call.name not in OURS]
    if exchange.calls != wanted:
        yield f"b: called {wanted}, the client got {exchange.calls}"
    early = [c for _, a in rounds[:-1] for c in a.calls if c.name not in OURS]
    if early:
        yield f"b: a round went on behind calls of the client's: {early}"


def _requests(format: str, exchange: Exchange) -> Iterator[str]:
    other = {"a": "b", "b": "a"}[exchange.tenant]
    for record in exchange.records:
        if record.violations:
            yield f"c: request {record.number}: {record.violations}"
        elif record.refusal and record.number not in exchange.said and not _too_long(record):
            yield f"c: request {record.number}: {record.status} {record.refusal}"
        body = json.dumps(record.body)
        strange = {mark for mark in MARK.findall(body) if mark[1] == other}
        if strange:
            yield f"i: request {record.number} has {strange}"
        parts = list(parts_of(format, record.body))
        texts = Counter(m for p in parts if p.kind == "text" for m in MARK.findall(p.value))
        doubled = [mark for mark, count in texts.items() if count > 1 and mark[0] == "t"]
        paths = Counter(m for p in parts if p.kind == "call" and p.name not in OURS
                        for m in MARK.findall(json.dumps(p.value)))  # fmt: skip
        doubled += [mark for mark, count in paths.items() if count > 1]
        if doubled:
            yield f"b: request {record.number} has twice {doubled}"
        odd = [p.value for p in parts if p.kind == "result" and PYTHON.search(json.dumps(p.value))]
        if odd:
            yield f"c: request {record.number} tells the model of our insides: {odd}"
        lies = [p for p in parts if p.kind == "call" and re.search(r"m_e[ab]_", str(p.value))]
        if lies:
            yield f"g: request {record.number} has a call that no model made: {lies}"


def _too_long(record: Any) -> bool:
    """Tokens are estimated: a request may be too long all the same, and is then cut once more."""
    return str(record.refusal).startswith("overflow")


def _usage(exchange: Exchange, sums_prompts: bool) -> Iterator[str]:
    rounds = exchange.rounds()
    if exchange.raised is not None or not rounds:
        return
    prompts = [record.tokens for record, _ in rounds]
    wanted = sum(prompts) if sums_prompts else prompts[-1]
    if exchange.prompt != wanted:
        yield f"e: prompts {prompts}, the client got {exchange.prompt}"
    outputs = [_output(answer) for _, answer in rounds]
    if exchange.output != sum(outputs):
        yield f"e: outputs {outputs}, the client got {exchange.output}"


def _output(answer: Answer) -> int:
    """Tokens, as the strict provider counts them."""
    given = [
        json.dumps(dict(call.arguments), separators=(",", ":"), ensure_ascii=False)
        for call in answer.calls
    ]
    texts = [answer.thinking, answer.text, *(call.name for call in answer.calls), *given]
    return sum(COUNT(text) for text in texts if text)


def _notes(format: str, exchange: Exchange, kept: dict[str, str]) -> Iterator[str]:
    """Whether each request has the newest text of each name; ``kept`` is brought up to date."""
    now = dict(kept)
    for record in exchange.records:
        answer = exchange.said.get(record.number)
        calls = [p for p in parts_of(format, record.body) if (p.kind, p.name) == ("call", "note")]
        texts = [str(p.value.get("text")).strip() for p in calls if isinstance(p.value, dict)]
        for name, text in now.items():
            if text not in texts:
                yield f"f: request {record.number} lacks the note {name}: {text[:40]!r}"
        if not isinstance(answer, Answer):
            continue
        for call in answer.calls:
            if call.name == "note":
                note(now, call.arguments)
    if exchange.raised is None:
        kept.clear()
        kept.update(now)


def note(kept: dict[str, str], arguments: Any) -> None:
    """What a call does to the notes, by the words of docs/recall.md."""
    name, text = arguments.get("name"), arguments.get("text")
    if not isinstance(name, str) or not isinstance(text, str) or not name.strip():
        return
    name, text = " ".join(name.split()), text.strip()
    if len(text) > 2_000 or len(name) > 80:
        return
    if text and name not in kept and len(kept) >= 20:
        return
    kept.pop(name, None)
    if text:
        kept[name] = text
