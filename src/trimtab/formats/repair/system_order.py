"""Scans and repairs for system messages that stand where a provider refuses them.

Their words stay the system's: a message is moved to the nearest place that is allowed, joined with
the one before it, or put into the system prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.amounts import many
from trimtab.formats.engine.rule import Finding, Repair, Rule, reports
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import Transcript

_AT_SERVER = ("server-call", "server-result")
STRICT_TEMPLATES = r"qwen-?3\.[5-9]"
"""Models whose chat template raises where a system message is not first (QwenLM/Qwen3.8 #244)."""


def is_directive(message: Message) -> bool:
    """Whether it is a system message without content that only sets options: accepted anywhere."""
    return message.role == "system" and not message.parts and message.listed


def _speaks(message: Message) -> bool:
    directive = is_directive(message) or message.compaction is not None
    return message.role == "system" and not directive


# --- Claude: first, after the model, before the user, two in a row ----------------------------


@reports("system_first", "system_place", "system_in_a_row", "system_unsupported")
def scan_placed(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings system_first, system_place, system_in_a_row and system_unsupported.

    System messages in a row are one run; only what is before and behind it counts.
    """
    messages, base = transcript.messages, transcript.base
    numbers = [number for number, message in enumerate(messages) if _speaks(message)]
    for number in numbers if _is_unsupported(transcript) else ():
        yield Finding("system_unsupported", (*base, number), "a system message", number)
    for number in numbers:
        before, after = _speaker(messages, number, -1), _speaker(messages, number, 1)
        path = (*base, number)
        if before is None:
            yield Finding("system_first", path, "a system message before all others", number)
        elif before.role == "assistant" and not _ends_at_server(before):
            yield Finding("system_place", path, "a system message behind the model's", number)
        elif after is not None and after.role == "user":
            yield Finding("system_place", path, "a system message before the user's", number)
        if number and _speaks(messages[number - 1]):
            yield Finding("system_in_a_row", path, "two system messages in a row", number)


@reports("system_place")
def scan_misplaced(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings system_place, in formats in which only Claude behind a gateway refuses it."""
    if "system_place" in transcript.facts.refused:
        found = scan_placed(transcript, open_tail)
        yield from (finding for finding in found if finding.rule == "system_place")


def _is_unsupported(transcript: Transcript) -> bool:
    return "system_unsupported" in transcript.facts.refused


def _speaker(messages: Sequence[Message], number: int, step: int) -> Message | None:
    """The nearest message before (step −1) or behind (1) that is not a system message."""
    number += step
    while 0 <= number < len(messages):
        if messages[number].role != "system":
            return messages[number]
        number += step
    return None


def _ends_at_server(message: Message) -> bool:
    """Whether the model's message ends in a server's tool: the user need not speak next."""
    return bool(message.parts) and message.parts[-1].kind in _AT_SERVER


def move_to_place(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Moved behind the user's next message, else behind the last one before it."""
    messages, base = transcript.messages, transcript.base
    for finding in findings:
        number: int = finding.data
        at = _place_for(messages, number)
        value = paths.get(tree, (*base, number))
        if at is None:
            yield from move_to_prompt(transcript, tree, [finding])
            continue
        ops = (Insert((*base, at), value), Delete((*base, number)))
        yield Repair(finding.path, "a system message was moved behind a user message", ops)


def _place_for(messages: Sequence[Message], number: int) -> int | None:
    """The index behind the last message of the user's next turn, or of the one before."""
    at = number + 1
    while at < len(messages) and messages[at].role == "system":
        at += 1
    end = at
    while end < len(messages) and messages[end].role in ("user", "tool"):
        end += 1
    if end > at:
        return end
    while number and messages[number - 1].role not in ("user", "tool"):
        number -= 1
    return number or None


def join_neighbours(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """System messages in a row become one, each text a part of its own."""
    base, last = transcript.base, -1
    host: Path = ()
    for number in sorted(finding.data for finding in findings):
        if number - 1 != last:
            host = (*base, number - 1)
            held = _listed(transcript, paths.get(tree, host).get("content"))
        last, path = number, (*base, number)
        held = [*held, *_listed(transcript, paths.get(tree, path).get("content"))]
        ops = (Set((*host, "content"), held), Delete(path))
        yield Repair(path, "joined with the system message before it", ops)


def _listed(transcript: Transcript, content: Any) -> list[Any]:
    if isinstance(content, str):
        return [transcript.format.text_part(content)]
    return list(content) if isinstance(content, list) else []


# --- into the system prompt ------------------------------------------------------------------


def move_to_prompt(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Its words are put at the end of the system prompt; what is not text can be recalled."""
    base = transcript.base
    if not base:
        return  # a bare list of messages has no system prompt
    numbers = [finding.data for finding in findings]
    values = [paths.get(tree, (*base, number)) for number in numbers]
    key, prompt = _with_words(transcript, tree, values)
    ops: list[PathOp] = [Set((key,), prompt)]
    taken: list[Path] = []
    for number, value in zip(numbers, values, strict=True):
        path = (*base, number)
        if "output_config" in value:  # the options stay where they are
            ops.append(Set((*path, "content"), []))
        else:
            ops.append(Delete(path))
            taken.append(path)
    done = f"{many(len(numbers), 'system message')} put into the system prompt"
    yield Repair(findings[0].path, done, tuple(ops), tuple(taken))


def _with_words(transcript: Transcript, tree: Any, values: Sequence[Any]) -> tuple[str, Any]:
    """The key of the system prompt, and the prompt with the words of these messages behind it."""
    key: str = transcript.format.system_key
    prompt = tree.get(key)
    if transcript.format.system_is_text:
        return key, "\n\n".join(text for text in (prompt, *map(_words, values)) if text)
    parts = _listed(transcript, prompt) if prompt else []
    parts += [part for value in values for part in _listed(transcript, value.get("content"))
              if isinstance(part, dict) and isinstance(part.get("text"), str)]  # fmt: skip
    return key, parts


def _words(value: Any) -> str:
    content = value.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str))


PLACE_BY_GATEWAY = Rule(
    "system_place",
    "role 'system' must follow a 'user' message or an 'assistant' message ending in a "
    "server tool result",
    "anthropics/claude-code issue #73821, in the words of a gateway to Claude",
    move_to_place,
    dialects=frozenset(),
)
"""Of a gateway to Claude that takes another format; after a refusal."""


# --- templates of open models: one system message, and first; roles that alternate -------------


@reports("system_not_first")
def scan_not_first(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings system_not_first: a system message behind the first message, or behind the prompt
    that is beside the messages."""
    prompt = any(block.kind == "system" for block in transcript.head)
    for number, message in enumerate(transcript.messages):
        if message.role == "system" and (number or prompt):
            path = (*transcript.base, number)
            yield Finding("system_not_first", path, "a system message that is not first", number)


def join_first(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """All system messages become one, the first: their texts in order."""
    if transcript.format.system_is_text:
        firsts = [n for n, m in enumerate(transcript.messages) if m.role == "system"]
        every = [Finding("system_not_first", (*transcript.base, n), "", n) for n in firsts]
        yield from move_to_prompt(transcript, tree, every)
        return
    base, numbers = transcript.base, [finding.data for finding in findings]
    values = [paths.get(tree, (*base, number)) for number in numbers]
    taken = tuple((*base, number) for number in numbers)
    ops: list[PathOp] = [Delete(path) for path in taken]
    if transcript.messages[0].role == "system":
        values.insert(0, paths.get(tree, (*base, 0)))
        ops.append(Set((*base, 0, "content"), _joined(transcript, values)))
    else:
        ops.append(Insert((*base, 0), {**values[0], "content": _joined(transcript, values)}))
    done = f"{many(len(numbers), 'system message')} joined with the first"
    yield Repair(findings[0].path, done, tuple(ops), taken)


def _joined(transcript: Transcript, values: Sequence[Any]) -> Any:
    """The contents of messages of one role as one: a text where all are texts."""
    contents = [value.get("content") for value in values]
    contents = [content for content in contents if content]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents) or None
    return [part for content in contents for part in _listed(transcript, content)]


@reports("roles_alternate")
def scan_alternating(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings roles_alternate: a message of the role that spoke just before, and a first message
    of the model's.  Templates of models refuse them; only one that did is known to."""
    if "roles_alternate" not in transcript.facts.refused:
        return
    before = ""
    for number, message in enumerate(transcript.messages):
        path, role = (*transcript.base, number), message.role
        if role == before and role in ("user", "assistant"):
            again = transcript.messages[number - 1]
            if again.role == role and not again.calls:
                yield Finding("roles_alternate", path, f"two messages of the {role}", number)
        elif role == "assistant" and not before:
            yield Finding("roles_alternate", path, "the first message is the model's", number)
        before = before if role == "system" else role


def alternate(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """Neighbours of one role become one message; a short user message before the model's first."""
    base, last, host = transcript.base, -1, -1
    values: list[Any] = []
    for number in sorted(finding.data for finding in findings):
        path, message = (*base, number), transcript.messages[number]
        before = transcript.messages[number - 1] if number else None
        if before is None or before.role != message.role:
            begin = transcript.format.text_message("user", "(The conversation goes on.)")
            yield Repair(path, "a first user message was added", (Insert(path, begin),))
            continue
        if number - 1 != last:
            host, values = number - 1, [paths.get(tree, (*base, number - 1))]
        last = number
        values.append(paths.get(tree, path))
        whole = {**values[0], **values[-1], "content": _joined(transcript, values)}
        ops = (Set((*base, host), whole), Delete(path))
        yield Repair(path, f"joined with the {message.role} message before it", ops)
