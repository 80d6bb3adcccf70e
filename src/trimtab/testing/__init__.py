"""Tools for tests, ours and yours: a strict fake provider, and the laws of a format.

Importing loads no server; ``StrictProvider`` needs the extra "testing" when it is started.
"""

from __future__ import annotations

from trimtab.testing.answers import Answer, Call
from trimtab.testing.faults import Cut, Refuse, Slow
from trimtab.testing.laws import FormatLaws
from trimtab.testing.provider import StrictProvider
from trimtab.testing.record import Record
from trimtab.testing.refusals import Refusal, Style, styles

__all__ = [
    "Answer",
    "Call",
    "Cut",
    "FormatLaws",
    "Record",
    "Refusal",
    "Refuse",
    "Slow",
    "StrictProvider",
    "Style",
    "styles",
]
