"""Handles as hexadecimal digits, for callers that take nothing else.

A handle is ``r`` and 10 digits of base 32, 50 bits; its hash is the same number in 13 digits.
"""

from __future__ import annotations

import re

_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_HANDLE = re.compile(rf"r[{_DIGITS}]{{10}}")
_HASH = re.compile(r"[0-3][0-9a-f]{12}")


def hash_of(handle: str) -> str:
    """The hash of a handle; "" if it is none of ours.

    >>> hash_of("rabcdefghij"), handle_at(hash_of("rabcdefghij"))
    ('00110c8531d09', 'rabcdefghij')
    """
    if _HANDLE.fullmatch(handle) is None:
        return ""
    number = 0
    for digit in handle[1:]:
        number = number * 32 + _DIGITS.index(digit)
    return f"{number:013x}"


def handle_at(hash: str) -> str:
    """The handle with this hash; "" if there can be none."""
    if _HASH.fullmatch(hash) is None:
        return ""
    number, digits = int(hash, 16), ""
    for _ in range(10):
        number, digit = divmod(number, 32)
        digits = _DIGITS[digit] + digits
    return f"r{digits}"
