"""What a conversion could not carry.

Knows how one loss is told.  Does not know formats.
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.model import Path


class Loss(NamedTuple):
    """One thing that could not be carried, or only in another form.

    ``path`` is its place in the request that was given, ``what`` it is, ``why`` says what became
    of it.
    """

    path: Path
    what: str
    why: str
