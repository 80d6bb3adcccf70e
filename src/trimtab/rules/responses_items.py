"""What is wrong with calls, results and the input of OpenAI Responses: scans and repairs.

Knows how calls and results must stand to each other, and what an item must look like.  Does not
know the ids of items (responses_ids.py) nor any provider's words (the rows of openai_responses.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab import paths
from trimtab.formats.openai_responses import output_item, pairs
from trimtab.formats.responses_items import LONGEST_ID
from trimtab.index import Walk, walked
from trimtab.model import Message, Path, Transcript
from trimtab.paths import Delete, Insert, PathOp, Set
from trimtab.rules.base import Finding, Mend, new_alone, resumes
from trimtab.rules.content import BEGIN
from trimtab.rules.pairing import INTERRUPTED, Spot
from trimtab.rules.responses_ids import unlinked

STRICT_ORDER = "deepseek"
_STORED = ("rs_", "msg_")
"""References to these can't stand for a call."""

# --- calls and results -----------------------------------------------------------------------


def scan_pairs(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """call_unanswered, orphan_result, duplicate_result, duplicate_call, call_id_missing."""
    messages, base = transcript.messages, transcript.base
    found = pairs(messages)
    for number in found.twice:
        call_id = messages[number].calls[0].id
        detail = f"call id {call_id} stands twice"
        yield Finding("duplicate_call", (*base, number), detail, found.answers.get(number))
    told = walked(messages, _Told)
    tail = _tail(messages) if open_tail else len(messages)
    waiting = {messages[number].calls[0].id for number in found.open}
    for number in found.open:
        if number < tail and not (messages[number].type == "program" and told.last < number):
            call_id = messages[number].calls[0].id
            yield Finding("call_unanswered", (*base, number), f"call {call_id} has no output")
    stored = transcript.facts.server_state or told.refers
    for number in found.lone:
        part, spot = messages[number].results[0], Spot(number, messages[number].results[0])
        if part.id in waiting and part.id:
            continue  # stands before its call: answering the call moves it
        if part.id in found.names and part.id:
            detail = f"a second output for call {part.id}"
            yield Finding("duplicate_result", (*base, number), detail, spot)
        elif not (stored and part.id) and messages[number].type != "tool_search_output":
            detail = f"no call {part.id or '(without id)'} stands before this output"
            yield Finding("orphan_result", (*base, number), detail, spot)
    for number in found.nameless:
        answer = found.answers.get(number)
        yield Finding("call_id_missing", (*base, number), "a call without call_id", answer)


class _Told(Walk):
    """Where the user spoke last (a program of the server's waits until then for the answers to
    the calls it made), and whether something refers to calls that the server has."""

    last, refers = -1, False

    def add(self, number: int, message: Message) -> None:
        if message.role == "user":
            self.last = number
        elif message.type == "item_reference" and not (message.id or "").startswith(_STORED):
            self.refers = True


def _tail(messages: Sequence[Message]) -> int:
    """Where the newest step begins, if the input ends with it."""
    number = len(messages)
    while number and messages[number - 1].role == "tool":
        number -= 1
    while number and messages[number - 1].role == "assistant":
        number -= 1
    return number


@resumes(new_alone)  # more items behind a run of outputs make it no shorter
def scan_order(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    """calls_interleaved: an output that does not stand in the run right behind its run of calls."""
    if transcript.facts.dialect != STRICT_ORDER:
        return
    messages = transcript.messages
    for call, result in pairs(messages).since(first):
        if result > _end_of_outputs(messages, call):
            path = (*transcript.base, call)
            detail = f"items stand between call {messages[call].calls[0].id} and its output"
            yield Finding("calls_interleaved", path, detail, (call, result))


def _end_of_calls(messages: Sequence[Message], number: int) -> int:
    """The last of the calls that stand together with this one."""
    while number + 1 < len(messages) and messages[number + 1].calls:
        number += 1
    return number


def _end_of_outputs(messages: Sequence[Message], number: int) -> int:
    """The last of the outputs right behind the run of calls that this one stands in."""
    number = _end_of_calls(messages, number)
    while number + 1 < len(messages) and messages[number + 1].results:
        number += 1
    return number


def answer(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """An output for each interrupted call, right behind it and its siblings.

    One that stands too early is moved there; else one is made up; where none can be (a computer
    wants a screenshot), the model says in one line that it was interrupted.
    """
    messages, base = transcript.messages, transcript.base
    early: dict[str, list[int]] = {}
    for number in pairs(messages).lone:
        early.setdefault(messages[number].results[0].id, []).append(number)
    for finding in found:
        number = _number(transcript, finding)
        message, behind = messages[number], (*base, _end_of_calls(messages, number) + 1)
        part = message.calls[0]
        if part.id and early.get(part.id):
            there = (*base, early[part.id].pop(0))
            ops: list[PathOp] = [Delete(there), Insert(behind, paths.get(tree, there))]
            yield Mend(finding.path, "an output pulled behind its call", tuple(ops))
            continue
        made = output_item(message.type, part.id, INTERRUPTED)
        done = f"interrupted call answered ({part.tool or 'no name'})"
        if made is not None:
            yield Mend(finding.path, done, (Insert(behind, made),))
            continue
        text = f"[A {part.tool} call was interrupted and has no output.]"
        ops = [Set(finding.path, transcript.format.text_message("assistant", text))]
        ops += unlinked(transcript, number)
        yield Mend(finding.path, f"interrupted {part.tool} call put into words", tuple(ops),
                   (finding.path,))  # fmt: skip


def _number(transcript: Transcript, finding: Finding) -> int:
    """The position of the item a finding is about."""
    number = finding.path[len(transcript.base)]
    assert isinstance(number, int)
    return number


def pull(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Move outputs right behind their calls."""
    messages, base = transcript.messages, transcript.base
    for finding in found:
        call, result = finding.data
        there: Path = (*base, result)
        to = (*base, _end_of_outputs(messages, call) + 1)
        ops = (Delete(there), Insert(to, paths.get(tree, there)))
        yield Mend(finding.path, "an output pulled behind its call", ops)


def rename(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """A call id of its own for each call that has none or another's, and for its output."""
    messages, base = transcript.messages, transcript.base
    taken = {part.id for message in messages for part in (*message.calls, *message.results)}
    for finding in found:
        number = _number(transcript, finding)
        part, count = messages[number].calls[0], 2
        stem = part.id[: LONGEST_ID - 5] or "call"
        while f"{stem}_{count}" in taken:
            count += 1
        new = f"{stem}_{count}"
        taken.add(new)
        ops: list[PathOp] = [Set((*finding.path, *part.id_path), new)]
        if finding.data is not None:
            result = messages[finding.data].results[0]
            ops.append(Set((*base, finding.data, *result.id_path), new))
        yield Mend(finding.path, "call ids told apart", tuple(ops))


@resumes(new_alone)
def scan_call_ids(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    """call_id_too_long."""
    for number, message in enumerate(transcript.messages[first:], first):
        for part in message.calls or message.results:
            if len(part.id) > LONGEST_ID:
                path = (*transcript.base, number, *part.id_path)
                yield Finding("call_id_too_long", path, f"{len(part.id)} chars", (number, part))


# --- the whole input -------------------------------------------------------------------------


def scan_input(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """no_input."""
    facts = transcript.facts
    if transcript.messages or facts.server_state or facts.extra.get("asks"):
        return
    yield Finding("no_input", transcript.base, "there is nothing to answer")


def begin(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """A short user message as the whole input."""
    for finding in found:
        message = transcript.format.text_message("user", BEGIN)
        yield Mend(finding.path, "a first user message was added", (Set(finding.path, [message]),))


def shape_output(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """An output as the type of item demands it: a text, or a list of chunks for a shell."""
    for finding in found:
        number, _ = finding.data
        kind = transcript.messages[number].type
        key = "result" if kind == "program_output" else "output"
        value = paths.get(tree, finding.path).get(key)
        value = value if isinstance(value, str) else "" if value is None else paths.dump(value)
        if kind == "shell_call_output":
            ended = {"type": "exit", "exit_code": 0}
            value = [{"stdout": value, "stderr": "", "outcome": ended}]
        path = (*finding.path, key)
        yield Mend(path, "an output given the shape the provider demands", (Set(path, value),))


def shape_item(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """A bare text becomes a user message; what is no item at all is taken out."""
    for finding in found:
        value = paths.get(tree, finding.path)
        if isinstance(value, str) and value:
            message = transcript.format.text_message("user", value)
            yield Mend(finding.path, "a text made a user message", (Set(finding.path, message),))
        else:
            done = "something that is no item was taken out"
            yield Mend(finding.path, done, (Delete(finding.path),), (finding.path,))


def speak(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """The model's own texts are ``output_text``."""
    for finding in found:
        path = (*finding.path, "type")
        yield Mend(path, "a part of the model's made output_text", (Set(path, "output_text"),))
