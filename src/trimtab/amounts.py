"""Amounts as people write them: ``32k``, ``128_000``, ``1m``, ``90%``, ``2 calls``."""

from __future__ import annotations

import re
from decimal import Decimal

_AMOUNT = re.compile(r"(\d[\d_,]*(?:\.\d+)?) ?([km]?)", re.IGNORECASE | re.ASCII)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def amount(text: str) -> int:
    """``"32k"`` → 32_000, ``"1.5m"`` → 1_500_000, ``"128_000"`` and ``"128,000"`` → 128_000."""
    match = _AMOUNT.fullmatch(text.strip())
    if match and len(text) < 30:
        number = Decimal(re.sub("[_,]", "", match[1])) * _TIMES[match[2].lower()]
        if number == int(number):
            return int(number)
    raise ValueError(f"{text!r} is no amount; write 32k, 128_000 or 1m")


def short(number: int) -> str:
    """32_000 → ``"32k"``, 1_500_000 → ``"1.5m"``; digits where neither is shorter."""
    for letter, times in (("m", 1_000_000), ("k", 1_000)):
        if number >= times and number % (times // 10) == 0:
            return f"{number / times:g}{letter}"
    return f"{number:,}"


def many(count: int, what: str) -> str:
    """``1 call``, ``2 calls``, ``1,200 calls``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def share(text: str) -> float:
    """``"0.9"`` and ``"90%"`` → 0.9; above 0, at most 1."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise ValueError(f"{text!r} is no share; write 0.9 or 90%")
    return number
