"""Amounts as options: what cannot be read is a complaint of the command line.

Knows argparse.  Does not know how an amount is written.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from trimtab import amounts


def amount(text: str) -> int:
    """``"32k"`` → 32_000."""
    try:
        return amounts.amount(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def share(text: str) -> float:
    """``"90%"`` → 0.9."""
    try:
        return amounts.share(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
