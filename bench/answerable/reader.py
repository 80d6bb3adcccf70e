"""A program that reads: it answers only from the request it was sent, and from what it recalls.

It knows how each sort of fact is spelled and nothing of the world.  An answer names who said it:
the role of the message it was read in; within a recalled list of messages the role that stands
there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from answerable.worlds import TOOL, Question

BUDGET = 8
"""Calls of recall and search for one question."""
BACK, ON = 12_000, 4_000
"""Characters read before and behind a line that a search found."""
_ROLE = re.compile(r'"role"\s*:\s*"(\w+)"')
_HANDLE = re.compile(r'recall\("(\w+)"\)')
_PATH = re.compile(r"[\w./-]+\.py\b")
_TICKET = re.compile(r"\bOPS-\d+\b")
_DATE = r"(\d{4}-\d\d-\d\d)"


class Recaller(Protocol):
    """What a policy offers to get originals back; both answer with text, as a tool does."""

    def recall(self, arguments: Mapping[str, Any]) -> str:
        """``handle``, and maybe ``start`` and ``end`` in characters, ``steps`` or ``search``."""

    def search(self, words: str) -> list[tuple[str, int, int, str]]:
        """(handle, start, end, line) of lines of all originals."""


class Answer(NamedTuple):
    """A value, who said it, and where it stands: later is greater; if it was recalled, the line
    up to the value."""

    value: str
    speaker: str
    at: tuple[int, int]
    recalled: str = ""


@dataclass
class Read:
    """What reading for one question came to."""

    answer: Answer | None = None
    calls: int = 0
    texts: list[str] = field(default_factory=list)
    """What recall and search said: it is read, and paid for."""


def statements(text: str, question: Question, before: str = "") -> Iterator[tuple[int, str]]:
    """(offset, value) wherever a text says what is asked; ``before``: the call it answers."""
    entity, name = re.escape(question.entity), re.escape(question.attribute)
    match question.subject:
        case "constant":
            wanted = re.compile(rf"(?m)^(?P<head>[^\n=]*?)(?<![\w-]){name} = (\d+)\b")
            for found in wanted.finditer(text):
                if "-" not in found["head"] and _nearest(_PATH, text, found.end(), before) == (
                    question.entity
                ):
                    yield found.start(2), found[2]
        case "assignee" | "due":
            value = r"(\w+)" if question.subject == "assignee" else _DATE
            for found in re.finditer(rf'\b{name}"?\s*[:=]\s*"?{value}', text):
                if _ticket_of(text, found.start(), found.end(), before) == question.entity:
                    yield found.start(1), found[1]
        case "version":
            yield from _on_a_line(text, rf"(?<![\w-]){entity}\b", r"\b(v\d+\.\d+\.\d+)\b")
        case "code":
            yield from _on_a_line(text, rf"\b{entity}\b", r"\bcode=(E\d+)\b")
        case "told_due":
            yield from _said(text, rf"due date of {entity} is {_DATE}")
        case "freeze":
            yield from _said(text, rf"freeze of {entity} begins on {_DATE}")
        case "forbidden":
            yield from _said(text, rf"Never deploy {entity} to (region-\d+)")
        case "named":
            yield from _said(text, rf"migration of {entity} (mig-\d+)")


def _nearest(pattern: re.Pattern[str], text: str, end: int, before: str) -> str | None:
    """The last of a pattern before a place, else in the call."""
    found = None
    for found in pattern.finditer(text[:end]):  # noqa: B007
        pass
    if found is None:
        for found in pattern.finditer(before):  # noqa: B007
            pass
    return found[0] if found else None


def _ticket_of(text: str, start: int, end: int, before: str) -> str | None:
    """Whose a member of a ticket is: of the only one on its line, else of the nearest before."""
    line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
    if len(named := set(_TICKET.findall(line))) == 1:
        return str(named.pop())
    return _nearest(_TICKET, text, end, before)


def _on_a_line(text: str, entity: str, value: str) -> Iterator[tuple[int, str]]:
    """The value of a line that names the entity; several values say of none whose it is."""
    for line in re.finditer(r"[^\n]+", text):
        if re.search(entity, line[0]):
            found = list(re.finditer(value, line[0]))
            if len({one[1] for one in found}) == 1:
                yield line.start() + found[-1].start(1), found[-1][1]


def _said(text: str, sentence: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(sentence, text):
        yield found.start(1), found[1]


def texts(messages: list[dict[str, Any]]) -> Iterator[tuple[int, str, str, str]]:
    """(message, speaker, text, the call it answers) of every text of a request."""
    calls: dict[str, str] = {}
    for number, message in enumerate(messages):
        speaker = message["role"]
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        call = calls.get(message.get("tool_call_id") or "", "")
        for part in parts:
            yield number, speaker, str(part.get("text") or ""), call
        for one in message.get("tool_calls") or []:
            given = plain(str(one["function"]["arguments"]))
            calls[one["id"]] = given
            yield number, speaker, given, ""


def plain(text: str) -> str:
    """JSON text with its escapes of lines and quotes resolved, once or twice escaped."""
    for _ in range(2):
        text = re.sub(r'\\(n|"|t|\\)', lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), text)
    return text


def read(
    request: Mapping[str, Any], question: Question, recaller: Recaller | None, budget: int = BUDGET
) -> Read:
    """Answer one question; with ``recaller`` by at most ``budget`` calls of it."""
    messages, done = list(request["messages"]), Read()
    found = [
        Answer(value, speaker, (number, offset))
        for number, speaker, text, call in texts(messages)
        for offset, value in statements(text, question, call)
    ]
    if recaller is not None:
        found += _recalled(messages, question, recaller, budget, done)
    if found:
        asked = [one for one in found if one.speaker in question.speakers]
        done.answer = max(asked or found, key=lambda one: one.at)
    return done


def _recalled(
    messages: list[dict[str, Any]], question: Question, recaller: Recaller, budget: int, done: Read
) -> list[Answer]:
    """What is said in originals: searched for by what is asked about, then read around it."""
    found: list[Answer] = []
    seen: dict[str, list[tuple[int, int]]] = {}
    lines = set[str]()
    for handle in _offered(messages, question):
        if done.calls >= budget:
            break
        text = _asked(recaller, handle, None, None, done)
        found += _in_original(messages, question, handle, text, 0)
    queries = [question.entity, f"{question.entity} {question.attribute}"]
    for query in queries:
        if done.calls >= budget or (found and query != question.entity):
            break
        hits = recaller.search(query)
        done.calls += 1
        done.texts.append("\n".join(line for *_, line in hits))
        for handle, start, end, line in _newest_first(hits):
            if line in lines:  # an older original of the same steps
                continue
            lines.add(line)
            if any(low <= start and end <= high for low, high in seen.get(handle, [])):
                continue
            if done.calls >= budget:
                break
            low, high = max(0, start - BACK), end + ON
            text = _asked(recaller, handle, low, high, done)
            while low and done.calls < budget and not _ROLE.search(text[: start - low]):
                before, low = low, max(0, low - BACK)  # who said it stands further back
                text = _asked(recaller, handle, low, before, done) + text
            seen.setdefault(handle, []).append((low, high))
            found += _in_original(messages, question, handle, text, low)
    return found


def _asked(recaller: Recaller, handle: str, low: int | None, high: int | None, done: Read) -> str:
    """One call of recall."""
    text = recaller.recall({"handle": handle, "start": low, "end": high})
    done.calls += 1
    done.texts.append(text)
    return text


def _offered(messages: list[dict[str, Any]], question: Question) -> list[str]:
    """Handles in results of calls that name the entity, newest first: what is asked is there."""
    calls = {
        call["id"]
        for message in messages
        for call in message.get("tool_calls") or []
        if question.entity in plain(str(call["function"]["arguments"]))
    }
    handles = [
        handle
        for message in reversed(messages)
        if message.get("tool_call_id") in calls
        for handle in _HANDLE.findall(str(message.get("content")))
    ]
    return list(dict.fromkeys(handles))


def _newest_first(hits: list[tuple[str, int, int, str]]) -> list[tuple[str, int, int, str]]:
    """Handles as the search gave them, which is newest first; within one the last line first."""
    order = {handle: number for number, (handle, *_) in reversed(list(enumerate(hits)))}
    return sorted(hits, key=lambda hit: (order[hit[0]], -hit[1]))


def _in_original(
    messages: list[dict[str, Any]], question: Question, handle: str, text: str, low: int
) -> Iterator[Answer]:
    """Answers in a part of an original: each spoken by the role that stands last before it, or, in
    an original without roles, by the message whose marker names the handle."""
    place, host = _marker(messages, handle)
    roles = [(one.start(), one[1]) for one in _ROLE.finditer(text)]
    if not roles:
        bare = plain(text)
        for offset, value in statements(bare, question, _call_of(messages, place)):
            yield Answer(value, host, (place, low + offset), _evidence(bare, offset, value))
        return
    for number, (start, role) in enumerate(roles):
        end = roles[number + 1][0] if number + 1 < len(roles) else len(text)
        call = plain(text[roles[number - 1][0] : start]) if number else ""
        bare = plain(text[start:end])
        for offset, value in statements(bare, question, call):
            yield Answer(value, role, (place, low + start + offset), _evidence(bare, offset, value))


def _evidence(text: str, offset: int, value: str) -> str:
    """The line up to the value, without the JSON that a message around it begins with."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset + len(value)]
    for key in ('"content":"', '"arguments":"'):
        line = line.rpartition(key)[2]
    return line


def _marker(messages: list[dict[str, Any]], handle: str) -> tuple[int, str]:
    """The message that names a handle, and its role."""
    for number, message in enumerate(messages):
        if handle in json.dumps(message):
            return number, str(message["role"])
    return -1, TOOL


def _call_of(messages: list[dict[str, Any]], number: int) -> str:
    """The arguments of the call that a message answers."""
    id = messages[number].get("tool_call_id") if number >= 0 else None
    for message in messages:
        for call in message.get("tool_calls") or []:
            if call["id"] == id:
                return plain(str(call["function"]["arguments"]))
    return ""


def spoken(messages: list[dict[str, Any]]) -> dict[str, str]:
    """All that each speaker said, for ``score``."""
    said: dict[str, list[str]] = {}
    for _, speaker, text, _ in texts(messages):
        said.setdefault(speaker, []).append(plain(text))
    return {speaker: "\n".join(parts) for speaker, parts in said.items()}


def score(question: Question, answer: Answer | None, said: Mapping[str, str]) -> str:
    """``right``, ``wrong``, ``moved`` (the value stands in somebody else's name), ``forged`` (it
    was recalled from what is no original: nobody of that name ``said`` so) or ``none``."""
    if answer is None:
        return "none"
    if answer.value != question.value:
        return "wrong"
    if answer.speaker not in question.speakers:
        return "moved"
    return "right" if answer.recalled in said.get(answer.speaker, "") else "forged"
