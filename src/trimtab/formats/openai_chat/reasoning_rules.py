"""The scan and repair for reasoning that some providers of the chat format require back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, reports
from trimtab.formats.openai_chat.dialects import REASONERS
from trimtab.jsontext.paths import Set
from trimtab.transcript.model import Message
from trimtab.transcript.notes import without_notes
from trimtab.transcript.transcript import MessagePass, Transcript

THOUGHT = "."
"""The placeholder for lost reasoning.  Clients send ".", a space or nothing; sending nothing was
refused as missing (earendil-works/pi issue #4251), and models imitate a longer text
(router-for-me/CLIProxyAPI issue #4899)."""


class _Lost(MessagePass):
    """Finds the model's messages without reasoning, and whether any message has reasoning."""

    def __init__(self) -> None:
        self.some = False
        """Whether a message has reasoning."""
        self.calling: list[int] = []
        """Messages without reasoning that have calls."""
        self.around: list[int] = []
        """Messages without reasoning in a turn (between two user messages) that has calls."""
        self._turn: list[int] = []
        """Messages without reasoning in the newest turn, while it has no calls."""
        self._called = False

    def add(self, number: int, message: Message) -> None:
        has = any(part.kind == "reasoning" for part in message.parts)
        self.some = self.some or has
        if message.role == "user" and not message.results:
            self._turn, self._called = [], False
        elif message.role == "assistant":
            self._called = self._called or bool(message.calls)
            if not has:
                self._turn.append(number)
                self.calling += [number] if message.calls else []
            if self._called:
                self.around += self._turn
                self._turn = []


@reports("reasoning_missing", "reasoning_partly_missing")
def scan_reasoning(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """reasoning_missing: a model that thinks wants its reasoning back, Kimi's in messages with
    calls, DeepSeek's in all messages of a turn with calls.  reasoning_partly_missing: some messages
    have reasoning, but nobody says that the model thinks now."""
    facts = transcript.facts
    named = "reasoning_missing" in facts.refused
    if not named and (facts.dialect not in REASONERS or facts.thinking == "disabled"):
        return
    lost = transcript.passed(_Lost)
    thinks = named or facts.thinking == "enabled"
    if not (thinks or lost.some):
        return
    rule = "reasoning_missing" if thinks else "reasoning_partly_missing"
    for number in lost.calling if facts.dialect == "kimi" else lost.around:
        detail = "no reasoning_content in a turn with calls"
        yield Finding(rule, (*transcript.base, number), detail, number)


def insert_reasoning_placeholder(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """``reasoning_content: "."`` where the reasoning was lost: the exchange itself stays."""
    for finding in findings:
        op = Set((*finding.path, "reasoning_content"), THOUGHT)
        yield Repair(finding.path, "lost reasoning made up for by a placeholder", (op,))


def may_drop_reasoning(transcript: Transcript, number: int) -> bool:
    """Whether a message's reasoning may be dropped: not if it has calls; with DeepSeek also not in
    a turn with calls, nor if tools are declared (its documentation has said both)."""
    if transcript.messages[number].calls:
        return False
    if transcript.facts.dialect != "deepseek":
        return True
    if transcript.facts.tools:
        return False
    return not _in_turn_with_calls(transcript.messages, number)


def _in_turn_with_calls(messages: Sequence[Message], number: int) -> bool:
    """Whether tools were called between the user's words around this message: a note that stands
    for steps left out counts as they did, and does not part the turn."""
    first, end = number, number + 1
    while first and not _said(messages[first]):
        first -= 1
    while end < len(messages) and not _said(messages[end]):
        end += 1
    return any(message.calls or _noted(message) for message in messages[first:end])


def _said(message: Message) -> bool:
    """Whether the message has words of the user, not only a note of ours."""
    texts = [block.text for block in message.blocks if block.kind == "text"]
    ours = bool(texts) and not any(map(without_notes, texts))
    return message.role == "user" and not message.results and not ours


def _noted(message: Message) -> bool:
    """Whether the message ends with a note of ours."""
    texts = [block.text for block in message.blocks if block.kind == "text"]
    return bool(texts) and without_notes(texts[-1]) != texts[-1]
