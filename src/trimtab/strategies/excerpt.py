"""A text cut in the middle, to a budget in tokens or in characters, with a note in between.

Knows texts and where they may be cut; knows JSON only as a question to ``json_cut``.  Does not
know whose text it is nor why it is cut.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.strategies.base import fewer_bytes
from trimtab.strategies.boundaries import at_or_before, chars_within, fits, head_end, tail_start
from trimtab.strategies.json_cut import cut_json


def cut_note(lines: int, chars: int, note: str = "") -> str:
    """``[... 1,204 lines, 48,110 chars cut; run the tool again to see them]``; note without ";"."""
    of_lines = f"{lines:,} line{'s' * (lines > 1)}, " if lines else ""
    more = f"; {note}" if note else ""
    return f"[... {of_lines}{chars:,} chars cut{more}]"


def spliced(text: str, head: int, tail: int, note: str, said: str = "") -> str:
    """``text`` without the characters from ``head`` to ``tail``, a note in their place.

    The note gets its own line where the cut spans lines; ``said`` stands on lines below it.
    """
    lines = text.count("\n", head, tail)
    middle = cut_note(lines, tail - head, note)
    if said:
        middle, lines = f"{middle}\n{said}", lines + 1
    if not lines:
        return text[:head] + middle + text[tail:]
    before = "" if head == 0 or text[head - 1] == "\n" else "\n"
    after = "" if tail == len(text) or text[tail] == "\n" else "\n"
    return text[:head] + before + middle + after + text[tail:]


def excerpt(text: str, tokens: int, count: Callable[[str], int], note: str) -> str | None:
    """Head and tail of at most ``tokens``; None if there is no room.  Counts only what it keeps."""
    room = tokens - count(cut_note(text.count("\n"), len(text), note)) - 4
    for _ in range(4):
        if room < 4:
            return None
        head = head_end(text, chars_within(text, room * 6 // 10, count))
        rest = room - room * 6 // 10
        tail = tail_start(text, chars_within(text, rest, count, last=True))
        if head < tail:
            new = spliced(text, head, tail, note)
            used = count(new)
            if used <= tokens:
                return new
            room -= used - tokens  # what joining the pieces cost
        room -= 2 + room // 16
    return None


def cut_to_tokens(
    text: str, tokens: int, count: Callable[[str], int], note: str = ""
) -> str | None:
    """First 60 % and last 40 % of ``tokens``, the note between included; lines kept whole if near.

    ``note`` is put into it after the sizes (``"run it again"``).  None if the text fits as it
    is, if the budget does not hold the note, or if nothing strictly smaller comes of it.
    """
    if fits(text, tokens, count):
        return None
    new = excerpt(text, tokens, count, note)
    return new if new is not None and fewer_bytes(new, text) else None


def cut_plain(text: str, chars: int, note: str = "") -> str:
    """At most ``chars`` characters: head, note, tail; where the note has no room, the head."""
    if len(text) <= chars:
        return text
    room = chars - len(cut_note(text.count("\n"), len(text), note)) - 2
    if room < 8:
        return text[: at_or_before(text, max(0, chars))]
    tail = tail_start(text, room - room * 6 // 10)
    return spliced(text, head_end(text, room * 6 // 10), tail, note)


def cut_to_chars(text: str, chars: int, note: str = "") -> str:
    """At most ``chars`` characters; the text itself if it is no longer.

    A JSON object, array or string stays valid JSON from 2 characters up; anything else becomes
    head, note and tail, or just its head.
    """
    chars = max(0, chars)
    if len(text) <= chars:
        return text
    found = cut_json(text, chars, note) if chars >= 2 else None
    return cut_plain(text, chars, note) if found is None else found
