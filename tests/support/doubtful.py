"""Requests judged and repaired by every row of the tables, also those that are not certain.

So a request is repaired after refusals that named all that it breaks.
"""

from __future__ import annotations

from typing import Any

from trimtab import formats
from trimtab.formats import rules
from trimtab.formats.rules import Repaired, Violation


def found(request: Any, format: str | None = None, model: str | None = None) -> list[Violation]:
    """What may be refused in a request, certain or not."""
    spoken = formats.find(request, format)[0]
    return list(rules.check(formats.read(request, spoken, model=model), doubtful=True))


def repaired(request: Any, format: str | None = None, model: str | None = None) -> Repaired:
    """The request repaired by every row that it breaks."""
    spoken = formats.find(request, format)[0]
    transcript = formats.read(request, spoken, model=model)
    return rules.repair(request, spoken, transcript, doubtful=True)
