"""Cuts the middle out of a text, to a budget in tokens or characters, and puts a note in its place;
and the offers for tool results and the model's prose that use such cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trimtab.reducers.base import (
    Config,
    Offer,
    fewer_bytes,
    loss_of,
    marker_offer,
    recall_call,
    smaller,
)
from trimtab.reducers.blobs import shorten_blobs
from trimtab.reducers.json_tree import cut_json
from trimtab.reducers.query_terms import MIN_RARE, RARE, QueryTerms, places
from trimtab.reducers.text_boundaries import (
    at_or_before,
    chars_within,
    fits_tokens,
    head_end,
    tail_start,
)
from trimtab.transcript.model import Block


def cut_note(lines: int, chars: int, note: str = "") -> str:
    """``[... 1,204 lines, 48,110 chars cut; run the tool again to see them]``; ``note`` is the part
    after ";"."""
    of_lines = f"{lines:,} line{'s' * (lines > 1)}, " if lines else ""
    more = f"; {note}" if note else ""
    return f"[... {of_lines}{chars:,} chars cut{more}]"


def replace_middle(text: str, head: int, tail: int, note: str, below: str = "") -> str:
    """``text`` with a note in place of the characters from ``head`` to ``tail``.

    The note is on its own line if the cut spans lines; ``below`` follows on the lines below it.
    """
    lines = text.count("\n", head, tail)
    middle = cut_note(lines, tail - head, note)
    if below:
        middle, lines = f"{middle}\n{below}", lines + 1
    if not lines:
        return text[:head] + middle + text[tail:]
    before = "" if head == 0 or text[head - 1] == "\n" else "\n"
    after = "" if tail == len(text) or text[tail] == "\n" else "\n"
    return text[:head] + before + middle + after + text[tail:]


def around_asked(text: str, tokens: int, config: Config, note: str) -> str | None:
    """At most ``tokens``: what is around asked names, then head and tail; None if it has none."""
    if not config.terms or not _windows(text, len(text), config.terms):
        return None
    chars = len(text) * tokens // max(1, config.count(text))
    for _ in range(5):
        new = cut_around(text, chars, config.terms, note)
        used = config.count(new)
        if used <= tokens:
            return new
        chars = min(chars - 8, chars * tokens * 49 // (50 * used))
        if chars < 80:
            return None
    return None


def head_and_tail(text: str, tokens: int, count: Callable[[str], int], note: str) -> str | None:
    """Head and tail of at most ``tokens``; None if there is no room.  Counts only the kept text."""
    room = tokens - count(cut_note(text.count("\n"), len(text), note)) - 4
    for _ in range(4):
        if room < 4:
            return None
        head = head_end(text, chars_within(text, room * 6 // 10, count))
        rest = room - room * 6 // 10
        tail = tail_start(text, chars_within(text, rest, count, last=True))
        if head < tail:
            new = replace_middle(text, head, tail, note)
            used = count(new)
            if used <= tokens:
                return new
            room -= used - tokens  # joining the pieces cost extra tokens
        room -= 2 + room // 16
    return None


def cut_to_tokens(
    text: str, tokens: int, count: Callable[[str], int], note: str = ""
) -> str | None:
    """Cut a text to head (60 % of ``tokens``), note and tail (40 %), at line ends if near.

    ``note`` is appended to the sizes (``"run it again"``).  None if the text fits as it is, if the
    budget does not hold the note, or if the result would not be strictly smaller.
    """
    if fits_tokens(text, tokens, count):
        return None
    new = head_and_tail(text, tokens, count, note)
    return new if new is not None and fewer_bytes(new, text) else None


def cut_text(text: str, chars: int, note: str = "") -> str:
    """At most ``chars`` characters: head, note, tail; if the note does not fit, only the head."""
    if len(text) <= chars:
        return text
    room = chars - len(cut_note(text.count("\n"), len(text), note)) - 2
    if room < 8:
        return text[: at_or_before(text, max(0, chars))]
    tail = tail_start(text, room - room * 6 // 10)
    return replace_middle(text, head_end(text, room * 6 // 10), tail, note)


WINDOW_CHARS = 240
"""Characters on either side of an asked name that are shown with it."""


def cut_around(text: str, chars: int, terms: QueryTerms, note: str = "") -> str:
    """``cut_text`` that shows what is around asked names before head and tail."""
    windows = _windows(text, chars, terms)
    if not windows or len(text) <= chars:
        return cut_text(text, chars, note)
    gap = len(cut_note(0, len(text), ""))
    room = chars - sum(b - a for a, b in windows) - gap * (len(windows) + 1) - len(note) - 2
    ends = max(0, room)
    head, tail = head_end(text, ends * 6 // 10), tail_start(text, ends - ends * 6 // 10)
    pieces = _merged([(0, head), *windows, (tail, len(text))])
    out, last = list[str](), 0
    for first, end in pieces:
        if first > last:
            out.append(cut_note(0, first - last, note))
            note = ""
        out.append(text[first:end])
        last = end
    if last < len(text):
        out.append(cut_note(0, len(text) - last, note))
    return "".join(out)


def _windows(text: str, chars: int, terms: QueryTerms) -> list[tuple[int, int]]:
    """What is around the rarest mentions, in order; at most three quarters of ``chars``."""
    found = places(text, terms) if terms else {}
    best = sorted((at for at in found if found[at] * RARE >= MIN_RARE), key=lambda at: -found[at])
    windows: list[tuple[int, int]] = []
    for at in best:
        reach = min(WINDOW_CHARS, chars // 4)
        first = at_or_before(text, max(0, at - reach))
        more = _merged([*windows, (first, at_or_before(text, min(len(text), at + 2 * reach)))])
        if 4 * sum(b - a + 40 for a, b in more) > 3 * chars:
            break
        windows = more
    return windows


def _merged(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pieces in order, those that touch as one; empty ones out."""
    out: list[tuple[int, int]] = []
    for first, end in sorted(piece for piece in pieces if piece[1] > piece[0]):
        if out and first <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((first, end))
    return out


def cut_to_chars(text: str, chars: int, note: str = "") -> str:
    """Cut to at most ``chars`` characters; the text itself if it is no longer.

    A JSON object, array or string stays valid JSON if ``chars`` is at least 2; anything else
    becomes head, note and tail, or only its head.
    """
    chars = max(0, chars)
    if len(text) <= chars:
        return text
    as_json = cut_json(text, chars, note) if chars >= 2 else None
    return cut_text(text, chars, note) if as_json is None else as_json


# --- levels ---

SMALLEST_TOKENS = 60


def cut_levels(text: str, config: Config, note: str) -> Iterator[Offer]:
    """Offers of excerpts of 60 × 2ⁿ tokens, the largest at most three quarters of the text.

    Sizes are a fixed scale, not shares of the text, so that an excerpt is not offered itself again.
    """
    total = config.count(text)
    budget, last = SMALLEST_TOKENS, text
    while budget * 8 <= total * 3:
        budget *= 2
    while SMALLEST_TOKENS <= budget <= total * 3 // 4:
        new = around_asked(text, budget, config, note) or head_and_tail(
            text, budget, config.count, note
        )
        if new is not None and smaller(new, last, config.count):
            used = config.count(new)
            why = f"first and last {used:,} of {total:,} tokens"
            yield Offer("replace", new, loss_of(used, total), "head-and-tail", why)
            last = new
        budget //= 2


def cut(block: Block, config: Config) -> Iterator[Offer]:
    """Offers of excerpts of a tool result: about a half, a quarter, … down to 60 tokens."""
    if block.kind == "result" and block.text:
        yield from cut_levels(block.text, config, _note(block.text, config))


MIN_MINIFIED = 2_000
MINIFIED = "[minified, "


def long_lines(block: Block, config: Config) -> Iterator[Offer]:
    """``cut`` for a text that is mostly one line of minified code, which ``blobs`` takes out."""
    text = block.text
    if block.kind != "result" or len(text) < MIN_MINIFIED:
        return
    longest = max(text.split("\n"), key=len)
    if 2 * len(longest) < len(text) or len(longest) < MIN_MINIFIED:
        return
    if MINIFIED not in shorten_blobs(longest):
        return
    least = shorten_blobs(text)
    for offer in cut_levels(text, config, _note(text, config)):
        if not smaller(least, offer.text, config.count):
            return
        yield offer


def _note(text: str, config: Config) -> str:
    fetch = recall_call(text, config)
    return f"{fetch} has all" if fetch else "run the tool again to see them"


def cut_to(block: Block, config: Config, tokens: int) -> Offer | None:
    """An excerpt of a tool result of at most ``tokens``, between two levels of ``cut``; None if
    there is none."""
    total = config.count(block.text)
    if block.kind != "result" or not SMALLEST_TOKENS <= tokens < total:
        return None
    note = _note(block.text, config)
    new = around_asked(block.text, tokens, config, note) or head_and_tail(
        block.text, tokens, config.count, note
    )
    if new is None or not smaller(new, block.text, config.count):
        return None
    used = config.count(new)
    why = f"first and last {used:,} of {total:,} tokens"
    return Offer("replace", new, loss_of(used, total), "head-and-tail", why)


def text_levels(block: Block, config: Config) -> Iterator[Offer]:
    """Offers of excerpts of the assistant's prose, then its marker; not part of ``levels``.

    A block does not know its speaker, so the caller must use this only for the model's text.
    """
    if block.kind == "text" and block.text and not block.sealed:
        fetch = recall_call(block.text, config)
        smallest = block.text
        for offer in cut_levels(block.text, config, f"{fetch} has all" if fetch else ""):
            smallest = offer.text
            yield offer
        for offer in marker_offer(block, config):
            if smaller(offer.text, smallest, config.count):
                yield offer
