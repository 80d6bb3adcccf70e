"""The guess that is tried after a refusal without a reason: that tool results are too long."""

from __future__ import annotations

from trimtab.errors import expect
from trimtab.setting_kinds import MAX

RESULT_CHARS = 512
"""Chars to which each tool result is cut after a refusal without a reason."""


def result_chars(value: int) -> int:
    """``retry_result_chars``, checked.  Raises InvalidSetting unless it is an int of at least 0."""
    is_whole = type(value) is int and 0 <= value <= MAX
    expect(is_whole, "retry_result_chars", value, "a whole number, 0 for no such retry")
    return value
