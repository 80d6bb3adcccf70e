"""Places where a text may be cut: between visible characters, at a line end if one is near."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

_REACH = 64  # characters; a longer cluster (stacked marks without end) is cut like plain text
_PARTING = ".,:-/"  # within a number, a version, a date or a name
_FLAG_HALVES = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_FLAGS_REACH = 65_536  # which halves belong together is only known from the start of the row
_JOINER = "\u200d"
_JOINING = (  # what belongs to the character before it, beside the categories Mn, Mc and Me
    ("\u1160", "\u11ff"),  # Hangul vowels and finals
    ("\u200c", "\u200d"),  # zero-width non-joiner and joiner
    ("\ud7b0", "\ud7ff"),  # more Hangul
    ("\uff9e", "\uff9f"),  # halfwidth voicing marks
    ("\U0001f3fb", "\U0001f3ff"),  # skin tones
    ("\U000e0020", "\U000e007f"),  # tags of subdivision flags
)


def splits_character(text: str, at: int) -> bool:
    """Whether a cut before ``text[at]`` would split one visible character or CR LF."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if before == _JOINER or unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    if any(first <= after <= last for first, last in _JOINING):
        return True
    if after in _FLAG_HALVES and before in _FLAG_HALVES:
        row = text[max(0, at - _FLAGS_REACH) : at]
        return (len(row) - len(row.rstrip(_FLAG_HALVES))) % 2 == 1
    return splits_surrogates(text, at)


def splits_surrogates(text: str, at: int) -> bool:
    """Whether ``at`` is between the two halves of a surrogate pair."""
    return (
        0 < at < len(text)
        and "\ud800" <= text[at - 1] <= "\udbff"
        and "\udc00" <= text[at] <= "\udfff"
    )


def at_or_before(text: str, at: int) -> int:
    """The nearest place not after ``at`` where the text may be cut."""
    for place in range(at, max(-1, at - _REACH), -1):
        if not splits_character(text, place):
            return place
    return at - 1 if splits_surrogates(text, at) else at


def at_or_after(text: str, at: int) -> int:
    """The nearest place not before ``at`` where the text may be cut."""
    for place in range(at, min(len(text), at + _REACH) + 1):
        if not splits_character(text, place):
            return place
    return at + 1 if splits_surrogates(text, at) else at


def _before_word(text: str, at: int) -> int:
    """The start of the word that a cut at ``at`` would split: half a number is another number."""
    place = at
    while place > at - _REACH and place > 0 and _is_within_word(text, place):
        place -= 1
    return place if place > 0 and not _is_within_word(text, place) else at


def _after_word(text: str, at: int) -> int:
    """The end of the word that a cut at ``at`` would split."""
    place = at
    while place < at + _REACH and _is_within_word(text, place):
        place += 1
    return place if not _is_within_word(text, place) else at


def _is_within_word(text: str, at: int) -> bool:
    """Whether ``at`` is between ASCII letters or digits, or next to a sign within a number or name:
    1,204 and v2.14 and part_9."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before in _PARTING:
        return at > 1 and _is_plain(text[at - 2]) and _is_plain(after)
    if after in _PARTING:
        return _is_plain(before) and at + 1 < len(text) and _is_plain(text[at + 1])
    return _is_plain(before) and _is_plain(after)


def _is_plain(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


def head_end(text: str, chars: int) -> int:
    """The end of a head of at most ``chars``: after a line if one ends in its last quarter, else
    before the word that it would split."""
    if chars >= len(text):
        return len(text)
    line = text.rfind("\n", chars - chars // 4, chars)
    end = line + 1 if line >= 0 else at_or_before(text, _before_word(text, chars))
    while end and text[end - 1] in " \t":  # a blank before the marker would be trailing space
        end -= 1
    return end


def tail_start(text: str, chars: int) -> int:
    """The start of a tail of at most ``chars``: at a line if one starts in its first quarter, else
    after the word that it would split."""
    start = len(text) - chars
    if start <= 0:
        return 0
    line = text.find("\n", start - 1, start + chars // 4)
    return line + 1 if line >= 0 else at_or_after(text, _after_word(text, start))


def fits_tokens(text: str, tokens: int, count: Callable[[str], int]) -> bool:
    """Whether the text costs at most ``tokens``; counts only as much of it as needed."""
    chars = 4 * tokens + 64
    while chars < len(text):
        if count(text[:chars]) > tokens + 4:  # a part can cost a few more than within the whole
            return False
        chars *= 4
    return count(text) <= tokens


def chars_within(text: str, tokens: int, count: Callable[[str], int], *, last: bool = False) -> int:
    """How many first (or last) characters cost at most ``tokens``, using about 9/10 of them.

    It counts slices of about the size kept, never a whole long text, to save time.
    """
    low, high = 0, len(text) + 1
    guess = min(len(text), 3 * tokens + 16)
    for _ in range(14):
        used = count(text[len(text) - guess :] if last else text[:guess])
        if used <= tokens:
            low = guess
            if low == len(text) or used * 10 >= tokens * 9:
                break
        else:
            high = guess
        # Density varies along a text: aim by proportion, but stay within the known bounds.
        aim = min(4 * guess + 16, guess * tokens * 31 // (32 * max(1, used)))
        guess = aim if low < aim < high else (low + min(high, 4 * low + 16)) // 2
        if not low < guess < high:
            break
    return low
