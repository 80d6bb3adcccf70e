"""Tools for tests, ours and yours: a strict fake provider, the laws of a format and of a store.

Importing loads no server; ``StrictProvider`` needs the extra "testing" when it is started.
"""

from __future__ import annotations

from trimtab_lab.testing.faults import Cut, Refuse, Slow
from trimtab_lab.testing.format_laws import FormatLaws
from trimtab_lab.testing.http_apis.answers import Answer, Call
from trimtab_lab.testing.http_apis.refusals import ErrorResponse, Style, styles
from trimtab_lab.testing.provider import StrictProvider
from trimtab_lab.testing.record import Record
from trimtab_lab.testing.store_laws import StoreLaws

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
