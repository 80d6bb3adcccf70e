"""The numbers of a refusal: which is the limit, which what was asked for, how far they hold.

Knows how the two are told apart in any wording.  Does not know providers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.refusals.refusal import Exactness

_NUMBER = re.compile(r"(?<![\w.\-/<])(\d[\d,_]*)(?:\.\d+)? ?(kb|kib|mb|mib|k\b)?(?![\w\-/>]|\.\d)")
_TIMES = {"kb": 1_000, "k": 1_000, "kib": 1_024, "mb": 1_000_000, "mib": 1_048_576}
_SMALLEST = 16
"""A smaller number is an index, a count of something else, or a version."""
_NOT_COUNTED = re.compile(
    r"\d+ (?:input )?char\w*|<\d+>|^\d{3}\b|\(2013\)|maximum input length of \d+|"
    r"parameter=\w+, value="
)
"""Numbers of other things: characters, statuses, MiniMax's one code, what follows from others."""

_LIMIT = tuple(
    re.compile(words)
    for words in (
        r"(?:>|<=|\[1,|n_ctx:|max_model_len=) ?(?P<n>\d[\d,_]*)",
        r"(?:limit|context (?:length|size|window|limit)|max(?:imum)? (?:\w+ )?(?:length|size|"
        r"tokens)|"
        r"(?:tokens )?allowed|maximum)"
        r"(?: (?:of|is|to|was))*:?(?: only)? ?\(?(?:of |"
        r"is )?(?P<n>\d[\d,_]*)",
        r"(?P<n>\d[\d,_]*)(?:[ -]tokens?)?[ -](?:maximum|max|limit|context)",
        r"(?:only|up to|at most|limited to|more than|over|"
        r"exceeds?(?: the)?(?: \w+){0,4}?) \(?(?P<n>\d[\d,_]*)",
    )
)
_OUTPUT = re.compile(
    r"\+ (?P<a>\d+) >|(?P<b>\d[\d,]*) (?:tokens )?(?:in|for|of) the (?:completion|output)|"
    r"(?P<c>\d[\d,]*) (?:output tokens|max_new_tokens|completion tokens)|"
    r"max_\w*tokens\D{0,4}(?P<d>\d[\d,]*)"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a text says about size."""

    limit: int | None = None
    requested: int | None = None
    output: int | None = None
    exactness: Exactness = "guess"


def as_int(text: str) -> int:
    """``"40,000"`` → 40000."""
    return int(re.sub(r"\D", "", text))


def of_fields(fields: Mapping[str, int]) -> Numbers | None:
    """Machine-readable numbers, where the error has them."""
    if "n_ctx" in fields:
        return Numbers(fields["n_ctx"], fields.get("n_prompt_tokens"), None, "exact")
    if "prompt_eval_count" in fields:
        return Numbers(fields["prompt_eval_count"], None, None, "lower_bound")
    return None


def of_tokens(text: str) -> Numbers:
    """Tokens: the limit by the words around it, what was asked for by being above it."""
    words = _NOT_COUNTED.sub(" ", text)
    limit = _limit(words)
    found = _all(words)
    said = _OUTPUT.search(words)
    output = as_int(next(filter(None, said.groups()))) if said else None
    if limit is None and len(found) >= 2 and output is None:
        limit = min(found)
    if limit is None:
        return Numbers()
    if limit in found:
        found.remove(limit)
    requested = _requested(found, limit, output, words)
    return Numbers(limit, requested, output, _exactness(words, limit, requested, output, found))


def of_sizes(text: str) -> Numbers:
    """Bytes or characters: the smaller of two is the limit, a single one too."""
    found = [n for n in _all(_NOT_COUNTED.sub(" ", text)) if n >= 1_000]
    if not found:
        return Numbers()
    return Numbers(min(found), max(found) if len(found) > 1 else None, None, "exact")


def _all(text: str) -> list[int]:
    found = (as_int(n[1]) * _TIMES.get(n[2] or "", 1) for n in _NUMBER.finditer(text))
    return [number for number in found if number >= _SMALLEST]


def _limit(text: str) -> int | None:
    for words in _LIMIT:
        for found in words.finditer(text):
            if (number := as_int(found["n"])) >= _SMALLEST:
                return number
    return None


def _requested(found: list[int], limit: int, output: int | None, text: str) -> int | None:
    """The whole of what was asked for, output included where it is said."""
    if output is not None and output in found:
        rest = [number for number in found if number != output] or [output]
        whole = [number for number in rest if number - output in rest]
        if whole or (sums := [number for number in rest if number > limit + output]):
            return max(whole) if whole else (max(sums) if len(sums) > 1 else sums[0] + output)
        above = [number for number in rest if number > limit]
        return max(above) if len(rest) > 1 and above else max(rest) + output
    above = [number for number in found if number > limit]
    if above:
        return max(above)
    near = [n for n in found if n >= limit // 2 and re.search(rf"{n} (?:\w+ )?tokens", text)]
    return max(near, default=None)


def _exactness(
    text: str, limit: int, requested: int | None, output: int | None, found: list[int]
) -> Exactness:
    if requested is None:
        return "exact"
    cut = {limit + 1, limit + 1 - (output or 0)}
    if "at least" in text or cut.intersection(found) or requested <= limit:
        return "lower_bound"
    return "estimate" if re.search(r"\b(?:about|approx\w*|roughly|estimated)\b", text) else "exact"
