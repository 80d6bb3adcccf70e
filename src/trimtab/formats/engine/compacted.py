"""The provider's own compaction: messages before the newest one are read without blocks.

The provider ignores them (Anthropic: "the API ignores everything before it"; OpenAI: items before
the latest compaction may be left out), so they cost nothing, break no rule, and need no edit.  They
stay in the request as the client sent them, unless its body is too large: then they are left out
(``rules.ignored``).  OpenAI's ``/responses/compact`` returns a whole window
instead, the user's messages first and then the compaction: there nothing is ignored.  Such a window
is recognised by having no message of the model and no result before the compaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Message
from trimtab.transcript.transcript import Compaction, Transcript

IGNORED = "ignored"
"""The ``Message.type`` of a message that the provider ignores."""
_NOTHING = Message("other", (), framed=False, type=IGNORED)


def without_compacted(
    messages: tuple[Message, ...],
) -> tuple[tuple[Message, ...], Compaction | None]:
    """All messages, the ignored ones without blocks, and the newest compaction or None."""
    compactions = [(at, message) for at, message in enumerate(messages) if message.compaction]
    if not compactions:
        return messages, None
    number, newest = compactions[-1]
    assert newest.compaction is not None
    newest_part = newest.compaction
    if newest_part.path == () and not any(
        message.role in ("assistant", "tool") for message in messages[:number]
    ):
        return messages, None  # a window that /responses/compact made: the user's words stay live
    earlier = [
        (at, part)
        for at, message in compactions
        for part in message.parts
        if part.kind == "compaction" and part is not newest_part
    ]
    live = (_live_part(newest), *messages[number + 1 :])
    needed = _answered_later(messages[:number], live)
    ignored = tuple(
        one if at in needed else _ignored(one) for at, one in enumerate(messages[:number])
    )
    return (*ignored, *live), Compaction(number, newest_part, tuple(earlier))


def ignored_paths(transcript: Transcript) -> Iterator[Path]:
    """Paths of the messages before the newest compaction that the provider ignores, and of the
    parts beside it; none where the history is at the server (OpenAI: never prune with
    ``previous_response_id``)."""
    end, base = transcript.compaction, transcript.base
    if end is None or transcript.facts.server_state:
        return
    for number in range(end.message):
        if transcript.messages[number].type == IGNORED:
            yield (*base, number)
    if end.part.path:
        *content, index = end.part.path
        assert isinstance(index, int)
        yield from ((*base, end.message, *content, part) for part in range(index))


def _ignored(message: Message) -> Message:
    """The message without blocks; only its ``unreadable`` paths are kept."""
    if not message.unreadable:
        return _NOTHING
    return Message("other", (), framed=False, type=IGNORED, unreadable=message.unreadable)


def _live_part(message: Message) -> Message:
    """The message from its compaction part on."""
    assert message.compaction is not None
    first = message.parts.index(message.compaction)
    if first == 0:
        return message
    depth = len(message.compaction.path)  # all parts stand in one list
    replaced_paths = {part.path for part in message.parts[:first]}
    blocks = tuple(block for block in message.blocks if block.item[:depth] not in replaced_paths)
    return Message(
        message.role, blocks, message.parts[first:], message.listed, message.marks,
        message.inner_marks, message.id, message.type, message.framed, message.unreadable,
        tuple(one for one in message.tool_state if one[0][:depth] not in replaced_paths),
    )  # fmt: skip


def _answered_later(before: Sequence[Message], live: Sequence[Message]) -> frozenset[int]:
    """Indices of messages before the compaction with a call whose result comes after it."""
    called = {call_id for message in live for call_id in message.call_ids}
    lacking = {id for message in live for id in message.result_ids if id not in called}
    return frozenset(
        number for number, message in enumerate(before) if lacking.intersection(message.call_ids)
    )
