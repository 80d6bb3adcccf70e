"""Cuts a user's text: what was pasted gives way first, then what was written, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trimtab.reducers.base import Config, fewer_bytes, recall_call, smaller
from trimtab.reducers.cutting import cut_note, head_and_tail, replace_middle
from trimtab.reducers.digest import LineExcerpt, weigh_lines
from trimtab.reducers.text_boundaries import at_or_after, at_or_before, fits_tokens
from trimtab.transcript.user_text import pieces_of, spans_of

USER_CHARS = 100
"""Characters of a user's text that are always kept at each end."""
NEAR_CHARS = 200
"""Characters within which such an end goes on to the end of its line."""
MIN_EXCERPT = 24
"""Tokens; of a paste with less room only the note on its size is shown."""
SAMPLE_CHARS = 8_192
"""Characters counted to estimate the tokens of a paste."""
TRIES = 6


@dataclass(frozen=True)
class _TextPart:
    """A piece of prose, or a paste; ``tokens`` of a long paste are estimated."""

    start: int
    end: int
    written: bool
    tokens: int


def user_cut(text: str, config: Config, tokens: int) -> str | None:
    """A user's text cut to ``tokens``, but never below its first and last 100 characters.

    Pastes are shortened first, each to its most important lines; then the pieces of what the user
    wrote go, the oldest first.  The result can exceed ``tokens``.  None if the text fits, or if
    less than 200 characters could be cut.
    """
    count = config.count
    if fits_tokens(text, tokens, count):
        return None
    fetch = recall_call(text, config)
    note = f"{fetch} has all" if fetch else ""
    first, last = at_or_after(text, USER_CHARS), at_or_before(text, len(text) - USER_CHARS)
    if last - first < 2 * USER_CHARS:
        return None
    shortest = replace_middle(text, first, last, note)
    least = count(shortest)
    new = _within(text, config, tokens, note) if tokens > least else None
    # More text can be fewer tokens, but no cut may be below the one the minimum uses.
    if new is None or count(new) < least:
        new = shortest
    return new if smaller(new, text, count) else None


def written_tokens(text: str, config: Config) -> int:
    """About the tokens below which ``user_cut`` can no longer keep all that the user wrote."""
    parts = _parts(text, config.count)
    notes = _NOTE_TOKENS * sum(not part.written for part in parts)
    return sum(part.tokens for part in parts if part.written) + notes


def has_paste(text: str) -> bool:
    """Whether part of a user's text was pasted."""
    return any(span.kind != "written" for span in spans_of(text))


_NOTE_TOKENS = 32


def _parts(text: str, count: Callable[[str], int]) -> list[_TextPart]:
    parts = list[_TextPart]()
    for start, end, written in _ends_apart(text):
        sample = text[start : end if written else min(end, start + SAMPLE_CHARS)]
        size = count(sample) * (end - start) // len(sample)
        parts.append(_TextPart(start, end, written, size))
    return parts


def _ends_apart(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it was written) of each piece; a paste at an end of the text without the
    lines there that always stay, which count as written."""
    first, last = at_or_after(text, USER_CHARS), at_or_before(text, len(text) - USER_CHARS)
    first = text.find("\n", first, first + NEAR_CHARS) + 1 or first
    last = text.rfind("\n", max(first, last - NEAR_CHARS), last) + 1 or last
    for span in spans_of(text):
        if span.kind == "written":
            yield from ((start, end, True) for start, end in pieces_of(text, span))
            continue
        start, end = max(span.start, first), min(span.end, last)
        if start >= end:
            yield span.start, span.end, True
            continue
        parts = (span.start, start, True), (start, end, False), (end, span.end, True)
        yield from (part for part in parts if part[0] < part[1])


def _within(text: str, config: Config, tokens: int, note: str) -> str | None:
    """The text within ``tokens``; None if that is impossible."""
    parts = _parts(text, config.count)
    room, best = tokens, None
    for _ in range(TRIES):
        new = _shown(text, parts, config, room, note)
        over = config.count(new) - tokens
        if over <= 0:
            best = new
            break
        room -= over + 2
        if room <= 0:
            break
    return best


def _shown(text: str, parts: Sequence[_TextPart], config: Config, room: int, note: str) -> str:
    """The text with as much of each part as ``room`` holds."""
    prose = sum(part.tokens for part in parts if part.written)
    pastes = [part for part in parts if not part.written]
    free = room - prose - _NOTE_TOKENS * len(pastes)
    if free >= 0:
        shares = _shares([part.tokens for part in pastes], free + _NOTE_TOKENS * len(pastes))
        shown = {
            part.start: _excerpt(text[part.start : part.end], config, share, part.tokens)
            for part, share in zip(pastes, shares, strict=True)
        }
    else:
        shown = {part.start: "" for part in pastes}
        shown |= dict.fromkeys(_oldest(text, parts, config.count, room, note), "")
    return _joined(text, parts, shown, note)


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """The room of each paste: what a small one does not need goes to the larger ones."""
    shares = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda number: sizes[number])
    for done, number in enumerate(order):
        shares[number] = min(sizes[number], max(0, room) // (len(sizes) - done))
        room -= shares[number]
    return shares


def _oldest(
    text: str, parts: Sequence[_TextPart], count: Callable[[str], int], room: int, note: str
) -> Iterator[int]:
    """The starts of the pieces that have to go: those before the newest that fit."""
    own = [part for part in parts if part.written]
    room -= count(cut_note(text.count("\n"), len(text), note)) + 2
    room -= 12 * sum(not part.written for part in parts)
    full = False
    for part in reversed(own):
        full = full or part.tokens > room
        if full:
            yield part.start
        room -= part.tokens


def _excerpt(text: str, config: Config, tokens: int, total: int) -> str:
    """The lines of a paste that matter, within ``tokens``; "" if there is no room for any."""
    if tokens >= total:
        return text
    if tokens < MIN_EXCERPT:
        return ""
    body = text.rstrip()
    blank = text[len(body) :]
    if body.count("\n") >= 3:
        excerpt = LineExcerpt(weigh_lines(body), "")
        lines = excerpt.within(tokens, max(total, 1), config)
        if lines is not None and config.count(lines) * 10 >= tokens * 7:
            return lines + blank
    new = head_and_tail(body, tokens, config.count, "")
    return new + blank if new is not None and fewer_bytes(new, body) else ""


def _joined(text: str, parts: Sequence[_TextPart], shown: dict[int, str], note: str) -> str:
    """The parts in order, those in ``shown`` as they are there; a note for each gap, the first with
    the way to all of it.  The two ends of the text stay."""
    out, at = list[str](), 0
    first, last = at_or_after(text, USER_CHARS), at_or_before(text, len(text) - USER_CHARS)
    gap: tuple[int, int] | None = None

    def close() -> None:
        nonlocal gap, note
        if gap is not None and gap[0] < gap[1]:
            out.append(_gap(text, *gap, note))
            note = ""
        gap = None

    for part in parts:
        at = part.end
        new = shown.get(part.start)
        if new == "":
            begin, end = max(part.start, first), min(part.end, last)
            if begin >= end:
                close()
                out.append(text[part.start : part.end])
                continue
            if begin > part.start:
                out.append(text[part.start : begin])
            gap = (begin if gap is None else gap[0], end)
            if end < part.end:
                close()
                out.append(text[end : part.end])
            continue
        close()
        if new is None or new == text[part.start : part.end]:
            out.append(text[part.start : part.end])
        else:
            out.append(new if not note else f"{_told(text, part, new, note)}")
            note = ""
    close()
    assert at == len(text)
    return "".join(out)


def _told(text: str, part: _TextPart, new: str, note: str) -> str:
    """An excerpt below a line that tells how all of it is fetched."""
    lines = text.count("\n", part.start, part.end) + 1
    return f"[... the next {lines:,} lines are cut; {note}]\n{new}"


def _gap(text: str, start: int, end: int, note: str) -> str:
    """The note for ``text[start:end]``, with line breaks around it where it cuts lines."""
    body = text[start:end].rstrip()
    blank = text[start + len(body) : end]
    lines = body.count("\n")
    note_text = cut_note(lines, len(body), note)
    if not lines:
        return note_text + (blank or (" " if end < len(text) and not text[end].isspace() else ""))
    before = "" if start == 0 or text[start - 1] == "\n" else "\n"
    after = "" if blank or end == len(text) or text[end] == "\n" else "\n"
    return before + note_text + (blank or after)
