"""The header of ours on a request ("send it unchanged") and on its answer (what was done)."""

from __future__ import annotations

from collections.abc import Mapping

HEADER = "x-trimtab"
"""On every answer: one line about what was done.  On a request, "off": send it unchanged.  Names of
other headers of ours begin with it."""

ROUNDS = f"{HEADER}-rounds"
"""On an answer to a request with our recall tool: how many calls of the model it took.  That of a
stream is set when the stream has ended."""


def is_off(headers: Mapping[str, str]) -> bool:
    """Whether a request's headers ask for it to be sent unchanged.

    ``headers``: by lower-case name, or a mapping that ignores the case.
    """
    return str(headers.get(HEADER, "")).strip().lower() == "off"
