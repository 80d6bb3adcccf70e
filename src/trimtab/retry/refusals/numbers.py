"""The numbers in a refusal's text: the limit, the requested size, and how exact they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.retry.refusals.refusal import Exactness

_DIGITS = r"\d[\d,_]*(?:\.\d+)*"
_UNIT = r"(?: ?(?:kb|kib|mb|mib|[km])(?![a-z]))?"
_N = rf"(?P<n>{_DIGITS}{_UNIT})"
_NUMBER = re.compile(rf"(?<![a-z0-9_.\-/<]){_N}(?![a-z0-9_\-/>%]| %|\.\d)")
"""Not in names, versions or percentages; a letter of a script without blanks (Chinese) may be
adjacent."""
_AMOUNT = re.compile(rf"(?P<digits>{_DIGITS}) ?(?P<unit>[a-z]*)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_TIMES = {"": 1, "k": 1_000, "kb": 1_000, "kib": 1_024, "m": 1_000_000, "mb": 1_000_000,
          "mib": 1_048_576}  # fmt: skip
_FRENCH = re.compile(r"\bjetons\b|\blimite\b|dépass|\btrop\b")
_BLANK_IN_NUMBER = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
"""The blank in ``32 768``, as French writes numbers."""
_SMALLEST = 16
"""A smaller number is an index, a count of something else, or a version."""
_NOT_COUNTED = re.compile(
    r"\d+ (?:input )?char\w*|<\d+>|^\d{3}\b|\(2013\)|maximum input length of \d+|"
    r"parameter=\w+, value="
)
"""Numbers that are not sizes in tokens: characters, statuses, MiniMax's code 2013, derived
values."""

_LIMIT = tuple(
    re.compile(words.replace("N", _N))
    for words in (
        r"(?:>|<=|\[1,|n_ctx:|max_(?:model|seq)_len ?[=(]?) ?N",
        r"(?:limite?|context (?:length|size|window|limit)|max(?:imum)? (?:\w+ )?(?:length|size|"
        r"tokens)|(?:tokens )?allowed|maximum|kontextlänge|erlaubt|上限|"
        r"最大(?:\w{0,4}(?:长度|支持))?|longueur maximale du contexte)"
        r"(?: (?:of|is|to|was|von|de|sind))*:?(?: only)? ?"
        r"(?![(（]\d[^)）]{0,60}(?:max|limit|erlaubt|最大|上限)[^\d)）]{0,16}\d)"
        r"[(（]?(?:of |is )?N",
        r"N(?:[ -]tokens?)?[ -](?:maximum|max|limit|context|token (?:limit|context))",
        r"(?:only|up to|at most|limited to|more than|over|accepts|supports|"
        r"exceeds?(?: the)?(?: \w+){0,4}?) \(?N",
    )
)
_EXCESS = re.compile(
    rf"(?:exceed\w*|over|too (?:long|large)|above|longer|larger)\b.{{0,60}}?\bby (?:about |"
    rf"approximately |at least )?{_N}(?: tokens?)?|"
    rf"{_N.replace('?P<n>', '?P<n2>')} tokens? (?:over|too (?:many|long)|above|beyond)\b"
)
_OUTPUT = re.compile(
    r"\+ (?P<a>\d+) (?:>|is (?:greater|larger) than)|"
    r"(?P<b>\d[\d,]*) (?:tokens )?(?:in|for|of) the (?:completion|output)|"
    r"(?P<c>\d[\d,]*) (?:output tokens|max_new_tokens|completion tokens)|"
    r"max_\w*tokens\D{0,4}(?P<d>\d[\d,]*)"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Numbers:
    """The sizes that an error's text names."""

    limit: int | None = None
    requested: int | None = None
    output: int | None = None
    exactness: Exactness = "guess"
    excess: int | None = None
    """By how much the request was too large, if only that is said."""


def as_int(text: str) -> int:
    """``"40,000"`` → 40000, ``"262K"`` → 262000, ``"1.3m"`` → 1300000, ``"32.768"`` → 32768."""
    match = _AMOUNT.match(text)
    if match is None:
        return 0
    digits, unit = match["digits"], match["unit"]
    if digits.count(".") > 1 or (not unit and _THOUSANDS.fullmatch(digits)):
        digits = digits.replace(".", "")
    whole, _, part = re.sub(r"[,_]", "", digits).partition(".")
    times = _TIMES.get(unit, 1)
    return int(whole) * times + (int(part) * times // 10 ** len(part) if part else 0)


def numbers_in_fields(fields: Mapping[str, int]) -> Numbers | None:
    """The numbers in an error's machine-readable fields; None if it has none."""
    if "n_ctx" in fields:
        return Numbers(fields["n_ctx"], fields.get("n_prompt_tokens"), None, "exact")
    if "prompt_eval_count" in fields:
        return Numbers(fields["prompt_eval_count"], None, None, "lower_bound")
    return None


def token_numbers(text: str) -> Numbers:
    """Numbers of tokens: the limit is found by the words around it, the requested size is a number
    above it."""
    words = _NOT_COUNTED.sub(" ", text)
    if _FRENCH.search(words):
        words = _BLANK_IN_NUMBER.sub("", words)
    limit = _limit(words)
    amounts = _all(words)
    stated = _OUTPUT.search(words)
    output = as_int(next(filter(None, stated.groups()))) if stated else None
    over = _EXCESS.search(words)
    if over:
        excess = as_int(over["n"] or over["n2"])
        others = [number for number in amounts if number != excess]
        if limit in (None, excess) and not others:
            return Numbers(excess=excess)
        limit = None if limit == excess else limit
    if limit is None and len(amounts) >= 2 and output is None:
        limit = min(amounts)
    if limit is None:
        return Numbers()
    if limit in amounts:
        amounts.remove(limit)
    requested = _requested(amounts, limit, output, words)
    return Numbers(limit, requested, output, _exactness(words, limit, requested, output, amounts))


def size_numbers(text: str) -> Numbers:
    """Numbers of bytes or characters: the smallest is the limit, the largest the requested size."""
    amounts = [n for n in _all(_NOT_COUNTED.sub(" ", text)) if n >= 1_000]
    if not amounts:
        return Numbers()
    return Numbers(min(amounts), max(amounts) if len(amounts) > 1 else None, None, "exact")


def _all(text: str) -> list[int]:
    amounts = (as_int(number["n"]) for number in _NUMBER.finditer(text))
    return [number for number in amounts if number >= _SMALLEST]


def _limit(text: str) -> int | None:
    for words in _LIMIT:
        for match in words.finditer(text):
            if (number := as_int(match["n"])) >= _SMALLEST:
                return number
    return None


def _requested(amounts: list[int], limit: int, output: int | None, text: str) -> int | None:
    """The requested size; it includes the output if the text names the output."""
    if output is not None and output in amounts:
        rest = [number for number in amounts if number != output] or [output]
        whole = [number for number in rest if number - output in rest]
        if whole or (sums := [number for number in rest if number > limit + output]):
            return max(whole) if whole else (max(sums) if len(sums) > 1 else sums[0] + output)
        above = [number for number in rest if number > limit]
        return max(above) if len(rest) > 1 and above else max(rest) + output
    above = [number for number in amounts if number > limit]
    if above:
        return max(above)
    near = [n for n in amounts if n >= limit // 2 and re.search(rf"{n} (?:\w+ )?tokens", text)]
    return max(near, default=None)


def _exactness(
    text: str, limit: int, requested: int | None, output: int | None, amounts: list[int]
) -> Exactness:
    if requested is None:
        return "exact"
    cut = {limit + 1, limit + 1 - (output or 0)}
    if "at least" in text or cut.intersection(amounts) or requested <= limit:
        return "lower_bound"
    rounded = r"\b(?:about|approx\w*|roughly|estimated|etwa|environ)\b|\d ?[km](?![a-z])"
    return "estimate" if re.search(rounded, text) else "exact"
