"""A tool with which the model looks up what was left out, for each of the six formats.

Put ``definition`` among the tools of a request and fit it with ``recall=True``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.errors import expect
from trimtab.journal.archive import Originals
from trimtab.journal.excerpts import answer
from trimtab.sessions.own_tool import BARE, Declaration, OwnTool, format_named

NAME = "recall"
DESCRIPTION = (
    "Looks up what was shortened or left out of this conversation to make room: use it before you "
    "run a tool again or say that something is lost. Without arguments: a list of what was left "
    "out. search: the best lines in all of it. file: the last reading of a file, and edits since. "
    'handle, as notes name it (recall("handle")): the original, whole or the steps, lines or '
    "characters asked for."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "search": {"type": "string", "description": "words, rare ones best; with a handle, in it"},
        "file": {"type": "string", "description": "a path"},
        "handle": {"type": "string", "description": "as a note, a list or a search names it"},
        "steps": {"type": "string", "description": 'of folded steps: "3" or "3-5"'},
        "lines": {"type": "string", "description": '"40-80"'},
        "start": {"type": "integer", "description": "first character, from 0"},
        "end": {"type": "integer", "description": "the character to stop before"},
    },
}
"""The same bytes in every request and release: a changed tool moves the whole prompt cache."""


DECLARED = Declaration(NAME, DESCRIPTION, SCHEMA)


@dataclass(frozen=True)
class RecallTool(OwnTool):
    """The recall tool in one format."""

    declared: Declaration = DECLARED

    def read(self, call: Any) -> tuple[Any, str, Mapping[str, Any]]:
        """Id, name and arguments of any tool's call; a bare text is meant as a handle."""
        call_id, name, arguments = super().read(call)
        if (bare := arguments.get(BARE)) is not None:
            arguments = {"handle": bare} if bare.isprintable() and bare[:1].isalnum() else {}
        return call_id, name, arguments

    def result(self, originals: Originals, call: Any) -> dict[str, Any]:
        """The result of one call, as a part that can be placed beside those of other calls.

        ``originals``: what ``fit`` returned, or a ``Session``, which answers for the conversation
        that it fitted last.  For an unknown handle or invalid arguments the result says so.
        """
        has_recall = callable(getattr(originals, "recall", None))
        expect(has_recall, "originals", originals, "a Session, or what fit returned")
        call_id, _, arguments = self.read(call)
        return self.part(call_id, answer(originals, arguments))

    def execute(self, originals: Originals, call: Any) -> dict[str, Any]:
        """The result of one call as a separate message, to be appended to the conversation."""
        return self.message(self.result(originals, call))


def recall_tool(format: str) -> RecallTool:
    """The tool for a format (``"openai-chat:deepseek"`` too).  Raises InvalidSetting."""
    return RecallTool(format_named(format))
