"""Calls without the name of a tool, and a name in its place.

Knows that a call is refused without one, and the three places in which formats keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab import paths
from trimtab.model import Path, Transcript
from trimtab.paths import Set
from trimtab.rules.base import Finding, Mend, gives, new_alone, resumes

STAND_IN = "unnamed_tool"
_INSIDE = ("function", "custom", "function_call")


@gives("blank_tool_name")
@resumes(new_alone)
def blank_names(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    """Findings blank_tool_name."""
    for number, message in enumerate(transcript.messages[first:], first):
        for part in message.calls:
            if not part.tool.strip() and part.flaw != "arguments":
                path = (*transcript.base, number, *part.path)
                yield Finding("blank_tool_name", path, "call part", (number, part))


def name_calls(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """A name where none is: the call stays, and with it the evidence that something ran."""
    for finding in found:
        path = _place(tree, finding.path)
        done = f"a call without a name is called {STAND_IN}"
        yield Mend(finding.path, done, (Set(path, STAND_IN),))


def _place(tree: Any, path: Path) -> Path:
    call = paths.get(tree, path)
    inner = next((key for key in _INSIDE if isinstance(call.get(key), dict)), None)
    return (*path, inner, "name") if inner else (*path, "name")
