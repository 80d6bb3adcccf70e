"""Tools for tests, ours and yours: a strict fake provider, the laws of a format and of a store.

Importing loads no server; ``StrictProvider`` needs the extra "testing" when it is started.
"""

from __future__ import annotations

from trimtab.testing.faults import Cut, Refuse, Slow
from trimtab.testing.format_laws import FormatLaws
from trimtab.testing.http_apis.answers import Answer, Call
from trimtab.testing.http_apis.refusals import ErrorResponse, Style, styles
from trimtab.testing.provider import StrictProvider
from trimtab.testing.record import Record
from trimtab.testing.store_laws import StoreLaws

__all__ = [
    "Answer",
    "Call",
    "Cut",
    "ErrorResponse",
    "FormatLaws",
    "Record",
    "Refuse",
    "Slow",
    "StoreLaws",
    "StrictProvider",
    "Style",
    "styles",
]
