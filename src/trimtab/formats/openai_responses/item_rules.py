"""Scans and repairs for calls, results and the input of OpenAI Responses.

Item ids are in ``responses_ids``, error texts in the rows of ``openai_responses``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, reports
from trimtab.formats.openai_responses.format import Pairs, output_item
from trimtab.formats.openai_responses.id_rules import unlink_ops
from trimtab.formats.openai_responses.items import LONGEST_ID, MARK
from trimtab.formats.repair.content import BEGIN
from trimtab.formats.repair.pairing import INTERRUPTED, LocatedPart, named_by_unknown
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import MessagePass, Transcript

STRICT_ORDER = "deepseek"
_STORED = ("rs_", "msg_")
"""Prefixes of ids; a reference to such an item can't be a call."""

# --- calls and results -----------------------------------------------------------------------


def scan_pairs(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """call_unanswered, orphan_result, duplicate_result, duplicate_call, call_id_missing."""
    messages, base = transcript.messages, transcript.base
    pairs = transcript.passed(Pairs)
    for number in pairs.twice:
        call_id = messages[number].calls[0].id
        detail = f"call id {call_id} stands twice"
        yield Finding("duplicate_call", (*base, number), detail, pairs.answers.get(number))
    seen = transcript.passed(_UserAndReferences)
    tail = _tail(messages) if open_tail else len(messages)
    waiting = {messages[number].calls[0].id for number in pairs.open}
    for number in pairs.open:
        if number < tail and not (messages[number].type == "program" and seen.last < number):
            call_id = messages[number].calls[0].id
            if call_id in named_by_unknown(transcript, _end_of_turn(messages, number)):
                continue
            yield Finding("call_unanswered", (*base, number), f"call {call_id} has no output")
    stored = transcript.facts.server_state or seen.refers
    for number in pairs.lone:
        part, located = (
            messages[number].results[0],
            LocatedPart(number, messages[number].results[0]),
        )
        if part.id in waiting and part.id:
            continue  # it comes before its call: the repair of that call moves it
        if part.id in pairs.names and part.id:
            detail = f"a second output for call {part.id}"
            yield Finding("duplicate_result", (*base, number), detail, located)
        elif not (stored and part.id) and messages[number].type != "tool_search_output":
            detail = f"no call {part.id or '(without id)'} stands before this output"
            yield Finding("orphan_result", (*base, number), detail, located)
    for number in pairs.nameless:
        reply = pairs.answers.get(number)
        yield Finding("call_id_missing", (*base, number), "a call without call_id", reply)


class _UserAndReferences(MessagePass):
    """The user's last message (until then a server's program may wait for results of its calls),
    and whether an item refers to calls that the server keeps."""

    last, refers = -1, False

    def add(self, number: int, message: Message) -> None:
        if message.role == "user":
            self.last = number
        elif message.type == "item_reference" and not (message.id or "").startswith(_STORED):
            self.refers = True


def _end_of_turn(messages: Sequence[Message], number: int) -> int:
    """The first item behind the model's turn that this one is in."""
    while number < len(messages) and messages[number].role == "assistant":
        number += 1
    return number


def _tail(messages: Sequence[Message]) -> int:
    """The first item of the newest step, if the input ends with it."""
    number = len(messages)
    while number and messages[number - 1].role == "tool":
        number -= 1
    while number and messages[number - 1].role == "assistant":
        number -= 1
    return number


def scan_order(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """calls_interleaved: an output outside the run of outputs right after its run of calls."""
    if transcript.facts.dialect != STRICT_ORDER:
        return
    messages = transcript.messages
    for call, result in sorted(transcript.passed(Pairs).answers.items()):
        if result > _end_of_outputs(transcript, call):
            path = (*transcript.base, call)
            detail = f"items stand between call {messages[call].calls[0].id} and its output"
            yield Finding("calls_interleaved", path, detail, (call, result))


class _Runs(MessagePass):
    """Finds the end of each run of neighbouring calls, and of each run of outputs."""

    def __init__(self) -> None:
        self.calls: dict[int, list[int]] = {}
        self.outputs: dict[int, list[int]] = {}
        """Message → [the last message of its run]; all messages of a run share one list."""

    def add(self, number: int, message: Message) -> None:
        for runs, within in ((self.calls, message.calls), (self.outputs, message.results)):
            if within:
                end = runs[number] = runs.get(number - 1, [number])
                end[0] = number


def _end_of_calls(transcript: Transcript, number: int) -> int:
    """The last call of the run of calls that this one is in."""
    return transcript.passed(_Runs).calls[number][0]


def _end_of_outputs(transcript: Transcript, number: int) -> int:
    """The last output of the run right after the run of calls that this one is in."""
    end = _end_of_calls(transcript, number)
    return transcript.passed(_Runs).outputs.get(end + 1, [end])[0]


def answer_calls(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """An output for each interrupted call, right behind it and its siblings.

    One that stands too early is moved there; else one is made up; where none can be (a computer
    wants a screenshot), the model says in one line that it was interrupted.
    """
    messages, base = transcript.messages, transcript.base
    early: dict[str, list[int]] = {}
    for number in transcript.passed(Pairs).lone:
        early.setdefault(messages[number].results[0].id, []).append(number)
    for finding in findings:
        number = _number(transcript, finding)
        message, behind = messages[number], (*base, _end_of_calls(transcript, number) + 1)
        part = message.calls[0]
        if part.id and early.get(part.id):
            there = (*base, early[part.id].pop(0))
            ops: list[PathOp] = [Delete(there), Insert(behind, paths.get(tree, there))]
            yield Repair(finding.path, "an output pulled behind its call", tuple(ops))
            continue
        made = output_item(message.type, part.id, INTERRUPTED)
        done = f"interrupted call answered ({part.tool or 'no name'})"
        if made is not None:
            yield Repair(finding.path, done, (Insert(behind, made),))
            continue
        text = f"[A {part.tool} call was interrupted and has no output.]"
        ops = [Set(finding.path, transcript.format.text_message("assistant", text))]
        ops += unlink_ops(transcript, number)
        yield Repair(finding.path, f"interrupted {part.tool} call put into words", tuple(ops),
                   (finding.path,))  # fmt: skip


def _number(transcript: Transcript, finding: Finding) -> int:
    """The position of the item a finding is about."""
    number = finding.path[len(transcript.base)]
    assert isinstance(number, int)
    return number


def move_outputs(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Move outputs right behind their calls."""
    base = transcript.base
    for finding in findings:
        call, result = finding.data
        there: Path = (*base, result)
        to = (*base, _end_of_outputs(transcript, call) + 1)
        ops = (Delete(there), Insert(to, paths.get(tree, there)))
        yield Repair(finding.path, "an output pulled behind its call", ops)


def rename_call_ids(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A call id of its own for each call that has none or another's, and for its output."""
    messages, base = transcript.messages, transcript.base
    used_ids = {part.id for message in messages for part in (*message.calls, *message.results)}
    for finding in findings:
        number = _number(transcript, finding)
        part, count = messages[number].calls[0], 2
        stem = part.id[: LONGEST_ID - 5] or "call"
        while f"{stem}_{count}" in used_ids:
            count += 1
        new = f"{stem}_{count}"
        used_ids.add(new)
        ops: list[PathOp] = [Set((*finding.path, *part.id_path), new)]
        if finding.data is not None:
            result = messages[finding.data].results[0]
            ops.append(Set((*base, finding.data, *result.id_path), new))
        yield Repair(finding.path, "call ids told apart", tuple(ops))


def scan_call_ids(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """call_id_too_long."""
    for number, message in enumerate(transcript.messages):
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


def insert_first_user(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A short user message as the whole input."""
    for finding in findings:
        message = transcript.format.text_message("user", BEGIN)
        yield Repair(
            finding.path, "a first user message was added", (Set(finding.path, [message]),)
        )


def shape_output(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """An output as the type of item demands it: a text, or a list of chunks for a shell."""
    for finding in findings:
        number, _ = finding.data
        kind = transcript.messages[number].type
        key = "result" if kind == "program_output" else "output"
        value = paths.get(tree, finding.path).get(key)
        value = value if isinstance(value, str) else "" if value is None else paths.dump(value)
        if kind == "shell_call_output":
            ended = {"type": "exit", "exit_code": 0}
            value = [{"stdout": value, "stderr": "", "outcome": ended}]
        path = (*finding.path, key)
        yield Repair(path, "an output given the shape the provider demands", (Set(path, value),))


def shape_item(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A bare text becomes a user message; what is no item at all is taken out."""
    for finding in findings:
        value = paths.get(tree, finding.path)
        if isinstance(value, str) and value:
            message = transcript.format.text_message("user", value)
            yield Repair(finding.path, "a text made a user message", (Set(finding.path, message),))
        else:
            done = "something that is no item was taken out"
            yield Repair(finding.path, done, (Delete(finding.path),), (finding.path,))


def make_output_text(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The model's own texts are ``output_text``."""
    for finding in findings:
        path = (*finding.path, "type")
        yield Repair(path, "a part of the model's made output_text", (Set(path, "output_text"),))


# --- cache breakpoints -----------------------------------------------------------------------

MAX_MARKS = 4


@reports("too_many_marks")
def scan_marks(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """too_many_marks: more explicit cache breakpoints than one request may write."""
    marks = [
        (*transcript.base, number, *part.path)
        for number, message in enumerate(transcript.messages)
        for part in message.marked
    ]
    for path in marks[: max(len(marks) - MAX_MARKS, 0)]:
        yield Finding("too_many_marks", path, f"{len(marks)} cache breakpoints")


def remove_marks(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The oldest cache breakpoints taken off."""
    for finding in findings:
        path = (*finding.path, MARK)
        yield Repair(path, "the oldest cache breakpoint was taken off", (Delete(path),))
