"""A tool with which the model keeps its own texts, for each of the six formats.

Put ``definition`` among the tools of a request from the first one on, and ``result`` behind its
calls.  As long as the tool is declared, ``fit`` leaves the newest call of each name and its result
whole (``transcript/model_notes.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab import formats
from trimtab.formats.body import RequestBody
from trimtab.sessions.own_tool import Declaration, OwnTool, format_named
from trimtab.transcript.model_notes import DESCRIPTION, NAME, SCHEMA, model_notes, noted

DECLARED = Declaration(NAME, DESCRIPTION, SCHEMA)


@dataclass(frozen=True)
class NoteTool(OwnTool):
    """The note tool in one format."""

    declared: Declaration = DECLARED

    def notes(self, request: Any) -> Mapping[str, str]:
        """The notes that a request has, by name, newest first.  Raises InvalidRequest."""
        tree = RequestBody.of(request).tree
        format, _ = formats.find(tree, self.format)
        return {note.name: note.text for note in model_notes(formats.read(tree, format))}

    def result(self, request: Any, call: Any) -> dict[str, Any]:
        """The result of one call, as a part that can be placed beside those of other calls.

        ``request``: the one that was answered with the call, with its tools.  Where nothing can be
        kept, the result says why.
        """
        call_id, _, arguments = self.read(call)
        return self.part(call_id, noted(self.notes(request), arguments))

    def execute(self, request: Any, call: Any) -> dict[str, Any]:
        """The result of one call as a separate message, to be appended to the conversation."""
        return self.message(self.result(request, call))


def note_tool(format: str) -> NoteTool:
    """The tool for a format (``"openai-chat:deepseek"`` too).  Raises InvalidSetting."""
    return NoteTool(format_named(format))
