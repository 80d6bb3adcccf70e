"""``trimtab.of(client)``: what was done to the requests of a wrapped client, and how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar, Unpack

from trimtab.amounts import many
from trimtab.clients.sent_fits import SentFit, SentFits
from trimtab.errors import UnknownHandle, handle_in, shown
from trimtab.journal import excerpts
from trimtab.journal.archive import Archived
from trimtab.report import Report, ReportEdit
from trimtab.retry.effects import SendStats
from trimtab.session import Session
from trimtab.sessions.edit_history import LookUp, SearchHit, archive_of, lines_with
from trimtab.settings import check_names
from trimtab.suggestions import SuggestsNames

Value = TypeVar("Value")


class ClientView(SuggestsNames):
    """One conversation of a wrapped client: the one sent last, or one of ``conversations``.

        client = trimtab.wrap(OpenAI(), window=32_000)
        ...
        trimtab.of(client).report                  # of the last request; print it
        for edit in trimtab.of(client).history():  # every cut, oldest first
            print(edit)
        trimtab.of(client).undo(edit.handle)       # whole again from the next request on

    It shows the present state.  Of the conversations only the 16 sent last are known: the view of
    an older one is empty.
    """

    _GUESSES: ClassVar[Mapping[str, str]] = {
        "edits": "history", "cuts": "history", "tokens_saved": "stats.tokens_saved",
        "warnings": "report.warnings", "refusals": "stats.refusals",
    }  # fmt: skip

    def __init__(self, fits: SentFits, conversation: str | None = None) -> None:
        self._fits, self._conversation = fits, conversation

    @property
    def report(self) -> Report | None:
        """What was done to the last request that could be fitted, and why; None before the
        first."""
        last = self._last()
        return None if last is None else last.report

    @property
    def stats(self) -> SendStats:
        """Counters over all requests of the client."""
        return self._fits.stats

    @property
    def conversations(self) -> dict[str, ClientView]:
        """The conversations that were sent last, by their ids; the newest is the last."""
        return {id: ClientView(self._fits, id) for id in self._fits.conversations()}

    # --- what was taken out ---

    def history(self) -> list[ReportEdit]:
        """Every edit of the conversation, oldest first.  Raises StoreError."""
        last = self._last()
        return [] if last is None else last.session.history(last.fitted.conversation)

    @property
    def archive(self) -> Sequence[Archived]:
        """What the last request lacks of what the client gave, newest first."""
        last = self._last()
        return () if last is None else archive_of(last.session, last.fitted)

    def recall(
        self,
        handle: str | ReportEdit | Archived,
        start: int | None = None,
        end: int | None = None,
        *,
        steps: int | str | tuple[int, int] | None = None,
    ) -> str:
        """The exact original behind a handle, as ``Session.recall``.  Raises UnknownHandle,
        StoreError; ValueError if there are no such steps."""
        name = handle_in(handle)
        return self._of_handle(name, lambda one: one.recall(name, start, end, steps=steps))

    def search(self, text: str, *, most: int = 20) -> list[SearchHit]:
        """Lines of all that is archived that have this text, or all of its words; newest first."""
        return lines_with(self, self.archive, text, most)

    def look_up(self, **asked: Unpack[LookUp]) -> str:
        """What the recall tool answers, as ``Session.look_up``."""
        check_names(asked, LookUp.__annotations__.keys(), "look_up")
        return excerpts.answer(self, asked).text

    # --- what stays ---

    def undo(self, handle: str | ReportEdit) -> str:
        """Show the original of an edit again from the next request on, and pin it; other parts may
        be cut for it.  Returns what follows, in words, as ``Session.undo``.  Raises UnknownHandle,
        StoreError."""
        name = handle_in(handle)
        return self._of_handle(name, lambda one: one.undo(name))

    def pin(self, handle: str | ReportEdit = "", *, text: str = "", file: str = "") -> None:
        """Keep something whole from now on: the newest block with these words (``text``), the
        newest read of a path (``file``), or what an edit left, by its handle.  See
        ``Session.pin``."""
        self._change_pin(Session.pin, handle_in(handle), text, file)

    def unpin(self, handle: str | ReportEdit = "", *, text: str = "", file: str = "") -> None:
        """Remove a pin, named as for ``pin``."""
        self._change_pin(Session.unpin, handle_in(handle), text, file)

    def pins(self) -> list[str]:
        """What is pinned: handles, ``text:…``, ``file:…`` and refs, as ``Session.pins``."""
        last = self._last()
        return [] if last is None else last.session.pins(last.fitted.conversation)

    def _change_pin(self, change: Callable[..., None], handle: str, text: str, file: str) -> None:
        if handle and not (text or file):
            self._of_handle(handle, lambda one: change(one, handle))
            return
        last = self._last()
        if last is None:
            raise UnknownHandle("nothing sent is known: pin after the first request")
        change(last.session, handle, text=text, file=file, conversation=last.fitted.conversation)

    # --- which conversation, which session ---

    def _last(self) -> SentFit | None:
        known = self._fits.conversations()
        if self._conversation is not None:
            return known.get(self._conversation)
        return known[next(reversed(known))] if known else None

    def _of_handle(self, handle: str, do: Callable[[Session], Value]) -> Value:
        """Call ``do`` on the session that has the handle, be it of another conversation."""
        sent = [self._last(), *reversed(self._fits.conversations().values())]
        sessions = [one.session for one in sent if one is not None]
        if self._fits.session is not None:  # its store may have it from an earlier run
            sessions.append(self._fits.session)
        unknown = UnknownHandle(f"no edit has the handle {shown(handle)}: nothing was sent yet")
        for session in dict.fromkeys(sessions):
            try:
                return do(session)
            except UnknownHandle as error:
                unknown = error
        raise unknown

    def __repr__(self) -> str:
        stats = self._fits.stats
        if not stats.requests:
            return f"<trimtab on {self._fits.client}: no requests yet>"
        if self._conversation is not None:
            edits = many(len(self.history()), "edit")
            return f"<trimtab on {self._fits.client}, conversation {self._conversation}: {edits}>"
        return (
            f"<trimtab on {self._fits.client}: {many(stats.requests, 'request')}, "
            f"{many(stats.cuts, 'cut')}, {stats.tokens_archived:,} tokens archived>"
        )
