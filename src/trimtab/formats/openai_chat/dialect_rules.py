"""Scans and repairs for what single providers of the chat format refuse beyond OpenAI's rules.

Which provider has a rule, and its error text, is in the rows of ``rules.py``; reasoning is in
``reasoning_rules.py``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.amounts import many
from trimtab.formats.engine.rule import Finding, Repair, reports
from trimtab.formats.openai_chat.format import LONGEST_STRING
from trimtab.formats.repair.content import BEGIN, PLACEHOLDER
from trimtab.formats.repair.pairing import call_turns, rename_all
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, PathOp, Set
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import MessagePass, Transcript

OPENAI = frozenset({"openai", "azure"})
MISTRAL = frozenset({"mistral", "mistral-v3"})

LONGEST_ID = 40
MAX_CALLS = MAX_TOOLS = 128
PIECE = LONGEST_STRING // 4
"""Chars of a piece: short enough even if the limit should be in bytes."""
NOTED = "OK"
"""The model's text between a tool result and the user, if a message is required there."""

_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# --- ids -------------------------------------------------------------------------------------


@reports("id_too_long", "id_format")
def scan_ids(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """id_too_long, and id_format if the dialect requires exactly nine letters and digits."""
    nine = transcript.facts.dialect in MISTRAL
    for number, message in enumerate(transcript.messages):
        for part in message.calls or (message.results if nine else ()):
            long, odd = len(part.id) > LONGEST_ID, nine and not _NINE.fullmatch(part.id)
            if not part.id_path or not (long or odd):
                continue
            path = (*transcript.base, number, *part.id_path)
            if long:
                yield Finding("id_too_long", path, f"{len(part.id)} chars", (number, part))
            if odd:
                yield Finding("id_format", path, f"call id {part.id!r}", (number, part))


def respell_ids_to_nine(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Ids respelled as nine letters and digits, calls and results alike."""
    used_ids = {
        part.id for m in transcript.messages for part in m.parts if _NINE.fullmatch(part.id or "")
    }
    new: dict[str, str] = {}
    for finding in findings:
        old = finding.data[1].id
        if old and old not in new:
            new[old] = _nine(old, used_ids)
            used_ids.add(new[old])
    if new:
        ops = tuple(rename_all(transcript, new))
        yield Repair(findings[0].path, f"{many(len(new), 'call id')} respelled", ops)


def _nine(old: str, used_ids: set[str]) -> str:
    """The same nine characters for the same id, on every machine."""
    for salt in range(1_000):
        data = f"{salt or ''}{old}".encode("utf-8", "surrogatepass")
        value = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
        letters = "".join(_LETTERS[value // 62**place % 62] for place in range(9))
        if letters not in used_ids:
            return letters
    raise ValueError("no free id")


@reports("repeated_call_id")
def scan_repeats(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """repeated_call_id: a call id that an earlier turn has used."""
    for number, again in transcript.passed(_Repeats).found:
        path = (*transcript.base, number)
        yield Finding("repeated_call_id", path, f"call id {again} stands in two turns")


class _Repeats(MessagePass):
    """Messages with a call whose id an earlier one has used, and that id."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self._seen: set[str] = set()

    def add(self, number: int, message: Message) -> None:
        if not message.calls:
            return
        own = {part.id for part in message.calls if part.id_path}
        if again := own & self._seen:
            self.found.append((number, min(again)))
        self._seen |= own


def rename_repeated_ids(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """An id of its own for each later call, and for its result; the first keeps its id."""
    used: set[str] = set()
    for turn in call_turns(transcript):
        ops: list[PathOp] = []
        results = [*turn.results, *turn.late]
        for call in turn.calls:
            old = call.part.id
            answer = next((located for located in results if located.part.id == old), None)
            new, count = old, 2
            while new in used:
                new, count = f"{old}_{count}", count + 1
            used.add(new)
            for located in (call, answer) if new != old and call.part.id_path else ():
                if located is not None and located.part.id_path:
                    ops.append(Set((*transcript.base, located.message, *located.part.id_path), new))
        if ops:
            path = (*transcript.base, turn.calls[0].message)
            yield Repair(path, "call ids of two turns told apart", tuple(ops))


# --- lengths ---------------------------------------------------------------------------------


def split_long_strings(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A text that is too long goes in several text parts; arguments that are make room for a note.

    Nothing of a text is lost; the arguments can be recalled.
    """
    for number in dict.fromkeys(finding.data[0] for finding in findings):
        path = (*transcript.base, number, "content")
        content = paths.get(tree, path[:-1]).get("content")
        parts = [content] if isinstance(content, str) else content or []
        parts = [piece for part in parts for piece in _pieces(transcript, part)]
        if parts and len(parts) > (len(content) if isinstance(content, list) else 1):
            yield Repair(path, "a text sent in several parts", (Set(path, parts),))
    for finding in findings:
        number, part = finding.data
        if part.kind == "call":
            block = next(b for b in transcript.messages[number].blocks if b.item == part.path)
            path = (*transcript.base, number, *block.path)
            note = f"[{len(block.text):,} chars of arguments left out]"
            text = paths.dump({"note": note}) if block.spelling == "json-string" else note
            yield Repair(path, "arguments too long for one string", (Set(path, text),), (path,))


def _pieces(transcript: Transcript, part: Any) -> Iterator[Any]:
    text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or (len(text) <= LONGEST_STRING and isinstance(part, dict)):
        yield part
        return
    mark = transcript.format.mark_of(part)  # a cache breakpoint goes to the last piece
    for start in range(0, len(text), PIECE):
        end = start + PIECE
        yield transcript.format.text_part(
            text[start:end], marked=mark if end >= len(text) else None
        )


@reports("too_many_calls", "too_many_tools")
def scan_counts(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """too_many_calls and too_many_tools."""
    last = len(transcript.messages)
    for number, message in enumerate(transcript.messages):
        if len(message.calls) <= MAX_CALLS:
            continue
        calls = [part for part in message.calls if part.path[0] == "tool_calls"]
        if len(calls) > MAX_CALLS and not (open_tail and _answered_to(transcript, number) == last):
            path = (*transcript.base, number, "tool_calls")
            yield Finding("too_many_calls", path, f"{len(calls)} calls", number)
    tools = [block.path for block in transcript.head if block.path[0] == "tools"]
    if len(tools) > MAX_TOOLS:
        yield Finding("too_many_tools", ("tools",), f"{len(tools)} tools", tools)


def _answered_to(transcript: Transcript, number: int) -> int:
    """The index behind the results of this message's calls."""
    end, messages = number + 1, transcript.messages
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def split_calls(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """Calls made at once become several model messages in a row, each with its own results."""
    for finding in findings:
        number, base = finding.data, transcript.base
        calls = paths.get(tree, finding.path)
        stop = _answered_to(transcript, number)
        results = {
            part.id: index
            for index in range(number + 1, stop)
            for part in transcript.messages[index].results
        }
        ops: list[PathOp] = [Set(finding.path, calls[:MAX_CALLS])]
        for start in range(MAX_CALLS, len(calls), MAX_CALLS):
            rest = calls[start : start + MAX_CALLS]
            again = {"role": "assistant", "content": None, "tool_calls": rest}
            ops.append(Insert((*base, stop), again))
            for index in [results[c["id"]] for c in rest if c.get("id") in results]:
                ops.append(Delete((*base, index)))
                ops.append(Insert((*base, stop), paths.get(tree, (*base, index))))
        done = f"{len(calls)} calls told in messages of at most {MAX_CALLS}"
        yield Repair(finding.path, done, tuple(ops))


def remove_surplus_tools(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The last definitions are taken out, those of tools that were never called first."""
    called = {part.tool for message in transcript.messages for part in message.calls}
    for finding in findings:
        names = {path: _tool_name(paths.get(tree, path)) for path in finding.data}
        ranked = sorted(finding.data, key=lambda path: (names[path] not in called, path[1]))
        for path in sorted(ranked[MAX_TOOLS:]):
            done = f"the definition of {names[path] or 'a tool'} was taken out: too many"
            yield Repair(path, done, (Delete(path),), (path,))


def _tool_name(tool: Any) -> str:
    inner = tool.get("function") or tool.get("custom") or tool if isinstance(tool, dict) else {}
    return str(inner.get("name", "")) if isinstance(inner, dict) else ""


# --- what a message must hold ----------------------------------------------------------------


@reports("empty_parts", "empty_answer", "content_and_calls")
def scan_contents(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """empty_parts, empty_answer, content_and_calls: of the model's messages."""
    for number, message in enumerate(transcript.messages):
        if message.role != "assistant":
            continue
        path = (*transcript.base, number, "content")
        contents = [block for block in message.blocks if block.path[0] == "content"]
        contents = [block for block in contents if block.text or block.kind != "text"]
        if message.listed and not any(p.path[:1] == ("content",) for p in message.parts):
            yield Finding("empty_parts", path, "content is an empty list")
        if not contents and not message.calls:
            yield Finding("empty_answer", path, "neither content nor tool_calls")
        if contents and message.calls:
            yield Finding("content_and_calls", path, "content beside tool_calls")


def fill_empty_answer(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short text in place of no content."""
    for finding in findings:
        path, done = finding.path, "an empty message of the model's was given a text"
        op = Set(path, [transcript.format.text_part(PLACEHOLDER)])
        blank = paths.get(tree, path[:-1]).get(path[-1])
        yield Repair(path, done, (op,), () if blank is None else (path,))


def remove_text_beside_calls(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The words beside the calls are taken out; they can be recalled."""
    for finding in findings:
        done = "words beside tool calls were taken out"
        yield Repair(finding.path, done, (Set(finding.path, ""),), (finding.path,))


# --- order -----------------------------------------------------------------------------------


@reports("user_after_result", "system_late", "no_user", "last_not_user", "two_answers_last")
def scan_order(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """user_after_result, system_late, no_user, last_not_user and two_answers_last."""
    messages, base = transcript.messages, transcript.base
    for number in range(1, len(messages)):
        before, role = messages[number - 1].role, messages[number].role
        if role == "user" and before == "tool":
            yield Finding("user_after_result", (*base, number), "the user speaks after a result")
        elif role == "system" and before in ("assistant", "tool"):
            yield Finding("system_late", (*base, number), f"a system message after {before}")
    if not messages:
        return
    if not any(message.role == "user" for message in messages):
        first = next((n for n, m in enumerate(messages) if m.role != "system"), len(messages))
        yield Finding("no_user", (*base, first), "the user says nothing")
    last = messages[-1]
    if last.role == "assistant" and not last.calls and last.type != "prefix":
        path = (*base, len(messages) - 1)
        yield Finding("last_not_user", path, "the last message is the model's")
        if len(messages) > 1 and messages[-2].role == "assistant":
            yield Finding("two_answers_last", path, "the last two messages are the model's")


def _insert(role: str, text: str, done: str, finding: Finding, transcript: Transcript) -> Repair:
    message = transcript.format.text_message(role, text)
    return Repair(finding.path, done, (Insert(finding.path, message),))


def insert_model_message(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short message of the model's between the result and the user."""
    for finding in findings:
        done = "a short message of the model's was put behind a result"
        yield _insert("assistant", NOTED, done, finding, transcript)


def insert_user_message(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short user message before it."""
    for finding in findings:
        yield _insert("user", BEGIN, "a short user message was put before it", finding, transcript)
