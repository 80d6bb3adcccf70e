"""What the pages read of a session's conversation, and do to it, through the library's session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from trimtab.errors import TrimtabError, UnknownHandle
from trimtab.formats.registry import FormatName
from trimtab.journal.archive import Archived
from trimtab.proxy.callers.tenants import Tenants
from trimtab.proxy.records.edit_words import of_steps
from trimtab.proxy.records.session_record import EditRecord, SessionRecord
from trimtab.request.fitted import Fitted
from trimtab.sessions.note_tool import note_tool


class SessionArchive:
    """The originals, edits and pins of one session.  All of it runs in a worker thread."""

    def __init__(self, tenants: Tenants, record: SessionRecord) -> None:
        self._record = record
        self._session = tenants.find(record.upstream, record.tenant)

    def texts(self, handle: str) -> tuple[str | None, str]:
        """The original behind a handle (None if it is no longer kept), and what is sent instead."""
        if self._session is None:
            return None, ""
        try:
            return self._session.recall(handle), self._session.shown(handle)
        except TrimtabError:
            return None, ""

    def name_folds(self, edits: Iterable[EditRecord]) -> None:
        """Put into words what these folds took out, where that is not done yet."""
        for edit in edits:
            if edit.steps and edit.handle not in self._record.steps:
                original, _ = self.texts(edit.handle)
                self._record.steps[edit.handle] = of_steps(edit.handle, original or "")

    def pins(self) -> list[str]:
        """What is pinned in the conversation; [] if it is not known yet."""
        if self._session is None or not self._record.conversation:
            return []
        return self._session.pins(self._record.conversation)

    def pin(self, *, text: str, file: str, pinned: bool) -> None:
        """Pin a sentence or a file, or unpin it.  Raises TrimtabError."""
        if self._session is None or not self._record.conversation:
            raise UnknownHandle("this session has sent nothing yet: pin after its next request")
        change = self._session.pin if pinned else self._session.unpin
        change(text=text, file=file, conversation=self._record.conversation)

    def notes(self, body: bytes) -> Mapping[str, str]:
        """What the model noted down in the conversation, by name; {} where that cannot be said."""
        try:
            return note_tool(self._record.format).notes(body)
        except TrimtabError:
            return {}

    @property
    def archive(self) -> list[Archived]:
        """What was taken out, newest first."""
        return [Archived(edit.handle) for edit in reversed(self._record.edits.values())]

    def recall(self, handle: str) -> str:
        """The exact original.  Raises UnknownHandle."""
        if self._session is None:
            raise UnknownHandle(handle)
        return self._session.recall(handle)

    def preview(self, body: bytes) -> Fitted | None:
        """What a cut made now would leave of a request; None if it cannot be said."""
        try:
            format = cast(FormatName, self._record.format)
            return self._session.preview(body, format=format) if self._session else None
        except TrimtabError:
            return None

    def act(self, name: str, edit: EditRecord) -> None:
        """Undo an edit, pin its blocks, or unpin them.  Raises TrimtabError."""
        session = self._session
        if session is None:
            raise UnknownHandle("this session's upstream is no longer configured: add it again")
        acts: Mapping[str, Callable[[str], object]] = {
            "undo": session.undo, "pin": session.pin, "unpin": session.unpin,
        }  # fmt: skip
        acts[name](edit.handle)
        edit.pinned = name != "unpin"
        if name == "undo":
            edit.undone = self._record.count + 1
